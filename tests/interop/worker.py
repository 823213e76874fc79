"""A program that works until it is killed; what it says goes to a file, which a failing test shows."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Self


class Worker:
    def __init__(self, command: Sequence[str], log: Path) -> None:
        self._command = command
        self._log = log
        self._process = self._start()

    def _start(self) -> "subprocess.Popen[bytes]":
        with self._log.open("ab") as out:
            return subprocess.Popen(self._command, stdout=out, stderr=out)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill(self) -> None:
        """End it at once, as a crash would: SIGKILL."""
        self._process.kill()
        self._process.wait()

    def kill_and_restart(self) -> None:
        self.kill()
        self._process = self._start()

    def assert_runs(self) -> None:
        ended = self._process.poll()
        assert ended is None, f"it ended with exit code {ended}:\n{self._log.read_text()[-3000:]}"
