"""Programs that are members of a group, one for each client: `BOOTSTRAP TOPIC GROUP STRATEGY INSTANCE`.

They print what they are given and what they read, commit by themselves all 100 ms, and leave at SIGTERM. An empty
instance makes a dynamic member; the strategy `consumer` one of the protocol of that name (KIP-848).
"""

import signal
import sys
import threading
from collections.abc import Iterable


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def set_at_sigterm() -> threading.Event:
    over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    return over


class Assignment:
    """The partitions that a member has; says so whenever they have changed."""

    def __init__(self) -> None:
        self._partitions: list[int] | None = None

    def is_now(self, partitions: Iterable[int]) -> None:
        found = sorted(partitions)
        if found != self._partitions:
            self._partitions = found
            say("assigned", *found)
