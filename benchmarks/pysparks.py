"""A pyspark of another version than the installed one, from PyPI, kept in the user's cache directory."""

import os
import subprocess
import sys
from pathlib import Path

from benchmarks.fetched import Missing, cache_folder, put_in_place


def pyspark(version: str) -> Path:
    """A folder for the PYTHONPATH that contains that pyspark."""
    folder = cache_folder() / f"pyspark-{version}"
    if not folder.exists():
        unfinished = folder.with_name(f"{folder.name}.{os.getpid()}")
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(unfinished)]
        ran = subprocess.run([*command, f"pyspark=={version}"], capture_output=True, text=True, check=False)
        if ran.returncode:
            raise Missing(f"pip could not fetch pyspark {version}:\n{ran.stderr[-1000:]}")
        put_in_place(unfinished, folder)
    return folder
