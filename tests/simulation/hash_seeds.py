"""Runs of a scenario in a Python process of their own, because a process has one PYTHONHASHSEED."""

import os
import subprocess
import sys

DIGEST_MAX_S = 100


def digest_in_new_process(*arguments: str, hash_seed: int) -> str:
    """What Python prints when it is started with these arguments: the digest of a history."""
    return subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | {"PYTHONHASHSEED": str(hash_seed)},
        capture_output=True,
        text=True,
        check=True,
        timeout=DIGEST_MAX_S,
    ).stdout.strip()
