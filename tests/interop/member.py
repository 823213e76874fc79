"""A member of a consumer group: a process of its own, which can be killed without a word.

It runs one of the programs in `members/`, and reads what that prints, a line an event: `assigned 0 1 2`, what it has
whenever that changes, and `got PARTITION OFFSET`, each message. What it says of errors goes where the test's own goes.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

from tests.interop.client import DEADLINE_S

root = Path(__file__).parents[2]
SESSION_S = 6.0  # the shortest that Kafka allows


def in_python(program: str) -> list[str]:
    """The command of a program in `members/`."""
    return [sys.executable, "-m", f"tests.interop.members.{program}"]


class Member:
    def __init__(
        self, command: Sequence[str], bootstrap: str, topic: str, group: str, strategy: str, instance: str
    ) -> None:
        self.assigned: frozenset[int] = frozenset()
        self.assignments: list[frozenset[int]] = []  # all it ever had
        self.got: list[tuple[int, int]] = []  # partition and offset
        self._process = subprocess.Popen(
            [*command, bootstrap, topic, group, strategy, instance],
            stdout=subprocess.PIPE,
            text=True,
            cwd=root,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            word, *numbers = line.split()
            if word == "assigned":
                self.assigned = frozenset(int(one) for one in numbers)
                self.assignments.append(self.assigned)
            else:
                self.got.append((int(numbers[0]), int(numbers[1])))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def leave(self) -> None:
        """Commit, say goodbye and end."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(DEADLINE_S)
        self._reader.join(DEADLINE_S)

    def pause(self) -> None:
        """Let it do nothing, not even send heartbeats, until `resume`."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join(DEADLINE_S)


def soon(condition: Callable[[], bool], within_s: float = 2 * DEADLINE_S) -> None:
    """Groups take their time: sessions end, and members hear of it in their heartbeats."""
    until = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < until, f"not so after {within_s} s"
        time.sleep(0.02)
