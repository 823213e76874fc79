"""File locks: a writer of a history keeps other processes on this machine from doing the same kind of work there.

Writers on other machines are kept out by the log itself: each commit number can be taken only once.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal

from tailrace.pipeline.failure import PipelineFailed
from tailrace.pipeline.histories.delta_log import OWN_FOLDER

LockName = Literal["archive", "upkeep"]

_NAMES: Final = MappingProxyType({"archive": "lock", "upkeep": "upkeep-lock"})
_LOCKED_MESSAGES: Final = MappingProxyType(
    {
        "archive": "another archive is writing to {}, or a vacuum is at work there; let it end, or give another folder",
        "upkeep": "another compaction or vacuum is at work in {}; let it end",
    }
)


@contextmanager
def exclusive_lock(history: Path, name: LockName) -> Iterator[None]:
    """Hold the lock for this kind of work. `PipelineFailed` when another process holds the lock."""
    folder = history / OWN_FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / _NAMES[name]).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise PipelineFailed(_LOCKED_MESSAGES[name].format(history)) from None
        yield


def is_locked(history: Path, name: LockName) -> bool:
    """Whether a process on this machine is doing this kind of work now. Writes nothing."""
    try:
        with (history / OWN_FOLDER / _NAMES[name]).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    return False


def demand_unlocked(history: Path, name: LockName) -> None:
    """`PipelineFailed` when a process on this machine is doing this kind of work now."""
    if is_locked(history, name):
        raise PipelineFailed(_LOCKED_MESSAGES[name].format(history))


@contextmanager
def blocking_lock(history: Path) -> Iterator[None]:
    """A lock for very short work: wait until other processes have released it."""
    folder = history / OWN_FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "turn-lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
