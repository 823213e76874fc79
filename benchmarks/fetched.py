"""Requirements of other programs: tools on the PATH, and downloads kept in the user's cache directory."""

import os
import shutil
from pathlib import Path


class Missing(Exception):
    """Something that another program needs is not on this machine; the message says what."""


def cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tailrace"


def need(whose: str, *tools: str) -> None:
    """Raise `Missing` if one of the tools is not on the PATH."""
    for tool in tools:
        if shutil.which(tool) is None:
            raise Missing(f"{whose} needs {' and '.join(tools)}, and `{tool}` is not on the PATH")


def put_in_place(made: Path, wanted: Path) -> None:
    """Rename atomically; if another process was faster, discard this copy."""
    try:
        made.rename(wanted)
    except OSError:
        shutil.rmtree(made)
