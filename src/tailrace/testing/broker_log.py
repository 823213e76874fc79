"""What a broker process writes to standard error: kept in a file, or passed on line by line as it comes.

A test wants all of it, and only when something went wrong. A person in front of `tailrace cluster up` wants each line
at once, for as long as the brokers run: there only the last lines are kept.
"""

import os
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Final, Protocol

LOG_TAIL_LINES: Final = 20


class BrokerLog(Protocol):
    def open(self) -> IO[bytes]:
        """What to give to the process as its standard error; close it when the process has it."""
        ...

    def text(self) -> str:
        """What is known of it, over all starts of the broker."""
        ...


class LogFile:
    """All of it, in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def open(self) -> IO[bytes]:
        return open(self._path, "ab")

    def text(self) -> str:
        return self._path.read_text(errors="replace") if self._path.exists() else ""


class LogLines:
    """Each line to whoever wants it, from a thread that ends with the process; the last ones are kept."""

    def __init__(self, on_line: Callable[[str], None]) -> None:
        self._on_line = on_line
        self._last: deque[str] = deque(maxlen=LOG_TAIL_LINES)
        self._reader: threading.Thread | None = None

    def open(self) -> IO[bytes]:
        reading, writing = os.pipe()
        self._reader = threading.Thread(target=self._read, args=(reading,), name="broker-log", daemon=True)
        self._reader.start()
        return open(writing, "wb")

    def text(self) -> str:
        if self._reader is not None:
            self._reader.join(1.0)  # of a process that has ended, the last words may still be on their way
        return "\n".join(self._last)

    def _read(self, descriptor: int) -> None:
        with open(descriptor, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                self._last.append(line.rstrip("\n"))
                with suppress(OSError, ValueError):  # a terminal that is gone must not stop the broker's log
                    self._on_line(line.rstrip("\n"))


def last_lines(text: str) -> str:
    """How a log ends, to follow a sentence about a failure."""
    lines = text.splitlines()[-LOG_TAIL_LINES:]
    return "\nIts log ends:\n  " + "\n  ".join(lines) if lines else " Its log is empty."
