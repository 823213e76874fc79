"""Workers of a pipeline that is to be exactly once: processes that are killed, and what each of them said it did."""

import os
import subprocess
import sys
import threading
from pathlib import Path

from tailrace.testing.transaction_history import Outcome, Transaction, Write

root = Path(__file__).parents[2]
OUTCOMES = {"committed": Outcome.COMMITTED, "aborted": Outcome.ABORTED}


class Worker:
    """One name in the pipeline, and its lives."""

    def __init__(self, *words: str) -> None:
        self._words = words
        self._said: dict[str, Transaction] = {}
        self._lock = threading.Lock()
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.transformer", *self._words],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=root,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )
        self._listener = threading.Thread(target=self._listen, args=(self._process,), daemon=True)
        self._listener.start()

    def _listen(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        for line in process.stdout:
            word, name, *writes = line.split()
            with self._lock:
                if word == "begin":
                    self._said[name] = _begun(name, writes)
                else:
                    begun = self._said[name]
                    self._said[name] = Transaction(name=name, outcome=OUTCOMES[word], writes=begun.writes)

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    @property
    def transactions(self) -> tuple[Transaction, ...]:
        with self._lock:
            return tuple(self._said.values())

    @property
    def committed(self) -> int:
        return sum(one.outcome is Outcome.COMMITTED for one in self.transactions)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._listener.join()


def _begun(name: str, writes: list[str]) -> Transaction:
    """How it ends is not known until it says so: it may be killed before."""
    split = (one.partition("=") for one in writes)
    return Transaction(
        name=name, outcome=Outcome.UNKNOWN, writes=tuple(Write(partition, value) for partition, _, value in split)
    )
