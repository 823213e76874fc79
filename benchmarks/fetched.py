"""What foreign programs need: tools on the PATH, and what is fetched once into the user's cache directory."""

import os
import shutil
from pathlib import Path


class Missing(Exception):
    """Something that a foreign program needs is not on this machine; says what."""


def cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tailrace"


def need(whose: str, *tools: str) -> None:
    """`Missing` if one of the tools is not there."""
    for tool in tools:
        if shutil.which(tool) is None:
            raise Missing(f"{whose} needs {' and '.join(tools)}, and `{tool}` is not on the PATH")


def put_in_place(made: Path, wanted: Path) -> None:
    """Whole or not at all; who was slower than another throws its own away."""
    try:
        made.rename(wanted)
    except OSError:
        shutil.rmtree(made)
