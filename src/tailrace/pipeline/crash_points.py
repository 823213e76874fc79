"""Places where a process may die, named, so that tests can let it die there and see what is left.

Nothing happens unless the variable TAILRACE_CRASH_FILE names a file, and that file holds the name of the place. Then
the file is removed, so that it happens once, and the process is gone as if it had been killed: no exception, no
clean-up. A second line takes others along: all that this process comes from, up to the one with this name or number.
A worker's nearest `java` is its executor; the driver's number is known to whoever has started it.
"""

import os
import signal
from pathlib import Path
from typing import Final, Literal

VARIABLE: Final = "TAILRACE_CRASH_FILE"

CrashPoint = Literal[
    "source: offsets planned", "source: rows read",
    "archive: records fetched", "archive: files written", "archive: before the commit", "archive: committed",
    "sink: transaction begun", "sink: rows written", "sink: before the decision", "sink: decided",
    "sink: between two commits", "sink: committed", "sink: done",
    "compact: files merged", "compact: committed",
    "replay: records written", "replay: offsets moved", "replay: committed",
]  # fmt: skip


def here(place: CrashPoint) -> None:
    """Die, if this is where."""
    path = os.environ.get(VARIABLE)
    if path is None:
        return
    try:
        wanted, _, up_to = Path(path).read_text().strip().partition("\n")
        if wanted != place:
            return
        os.remove(path)
    except OSError:
        return
    die(_with_it(up_to))


def die(processes: list[int]) -> None:
    for process in processes:
        os.kill(process, signal.SIGKILL)


def _with_it(up_to: str) -> list[int]:
    """Those who die, this process last: whoever started it shall not live to see it gone."""
    chain = [os.getpid()]
    while up_to and chain[-1] > 1:
        named = Path(f"/proc/{chain[-1]}/comm").read_text().strip()
        if up_to in (named, str(chain[-1])):
            return chain[::-1]
        told = Path(f"/proc/{chain[-1]}/stat").read_text()
        chain.append(int(told.rpartition(")")[2].split()[1]))
    return [os.getpid()]
