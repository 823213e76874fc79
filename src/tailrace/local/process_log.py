"""What a broker process writes to standard error: kept in a file, or passed on line by line.

A test wants the whole log, and only after a failure: `LogFile`. A person in front of `tailrace cluster up` wants each
line at once, for as long as the brokers run: `LogLines` passes lines on, and keeps only the last ones.
"""

import os
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Final, Protocol

LOG_TAIL_LINES: Final = 20
READER_JOIN_TIMEOUT_S: Final = 1.0


class ProcessLog(Protocol):
    def open(self) -> IO[bytes]:
        """A file to be the standard error of the next process; close it once the process has it."""
        ...

    def text(self) -> str:
        """What is kept of the log, over all starts of the broker."""
        ...


class LogFile:
    """Keeps the whole log, in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def open(self) -> IO[bytes]:
        return open(self._path, "ab")

    def text(self) -> str:
        return self._path.read_text(errors="replace") if self._path.exists() else ""


class LogLines:
    """Passes each line to `on_line`, from a thread that ends with the process; keeps the last lines."""

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
            self._reader.join(READER_JOIN_TIMEOUT_S)  # the pipe may still hold the last lines of a process that ended
        return "\n".join(self._last)

    def _read(self, descriptor: int) -> None:
        with open(descriptor, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                self._last.append(line.rstrip("\n"))
                with suppress(OSError, ValueError):  # a closed terminal must not block the broker, which writes here
                    self._on_line(line.rstrip("\n"))


def last_lines(text: str) -> str:
    """The end of a log, to be appended to a sentence about a failure."""
    lines = text.splitlines()[-LOG_TAIL_LINES:]
    return "\nIts log ends:\n  " + "\n  ".join(lines) if lines else " Its log is empty."
