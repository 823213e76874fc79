"""Our own broker, started as a user would."""

import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Literal

from benchmarks.processes import Server, serving

Fsync = Literal["always", "never"]


def command(data: Path, fsync: Fsync) -> list[str]:
    serve = [sys.executable, "-m", "tailrace", "serve", "--host", "127.0.0.1", "--kafka-port", "0"]
    return [*serve, "--data-dir", str(data), "--fsync", fsync]


def broker(folder: Path, fsync: Fsync) -> AbstractContextManager[Server]:
    """A broker with an empty log in `folder`; stopped at the end."""
    return serving("tailrace", command(folder / "data", fsync), log=folder / "tailrace.log")
