"""Places where a process may die, named, so that tests can let it die there and see what is left.

Nothing happens unless the variable TAILRACE_CRASH_FILE names a file, and that file holds the name of the place. Then
the file is removed, so that it happens once, and the process is gone as if it had been killed: no exception, no
clean-up.
"""

import os
import signal
from typing import Final, Literal

variable: Final = "TAILRACE_CRASH_FILE"

Place = Literal[
    "source: offsets planned", "source: rows read",
    "archive: records fetched", "archive: files written", "archive: before the commit", "archive: committed",
    "sink: transaction begun", "sink: rows written", "sink: before the decision", "sink: decided",
    "sink: between two commits", "sink: committed", "sink: done",
    "replay: records written", "replay: offsets moved", "replay: committed",
]  # fmt: skip


def here(place: Place) -> None:
    """Die, if this is where."""
    path = os.environ.get(variable)
    if path is None:
        return
    try:
        with open(path) as file:
            wanted = file.read().strip()
        if wanted != place:
            return
        os.remove(path)
    except OSError:
        return
    os.kill(os.getpid(), signal.SIGKILL)
