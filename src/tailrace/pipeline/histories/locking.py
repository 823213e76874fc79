"""One at a time: who writes to a history keeps others of this machine from doing the same.

Those of another machine are kept out by the log itself: a commit has its number only once.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal

from tailrace.pipeline.failure import PipelineFailed
from tailrace.pipeline.histories.delta_log import OWN_FOLDER

Work = Literal["archive", "upkeep"]

_NAMES: Final = MappingProxyType({"archive": "lock", "upkeep": "upkeep-lock"})
_SAID: Final = MappingProxyType(
    {
        "archive": "another archive is writing to {}, or a vacuum is at work there; let it end, or give another folder",
        "upkeep": "another compaction or vacuum is at work in {}; let it end",
    }
)


@contextmanager
def alone(history: Path, work: Work) -> Iterator[None]:
    """`PipelineFailed` when another process does the same kind of work in this history."""
    folder = history / OWN_FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / _NAMES[work]).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise PipelineFailed(_SAID[work].format(history)) from None
        yield


def is_at_work(history: Path, work: Work) -> bool:
    """Whether a process of this machine does this kind of work now. Whoever asks writes nothing."""
    try:
        with (history / OWN_FOLDER / _NAMES[work]).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    return False


def demand_idle(history: Path, work: Work) -> None:
    """`PipelineFailed` when a process of this machine does this kind of work now."""
    if is_at_work(history, work):
        raise PipelineFailed(_SAID[work].format(history))


@contextmanager
def in_turn(history: Path) -> Iterator[None]:
    """For what takes no time: wait until others have done the same."""
    folder = history / OWN_FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "turn-lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
