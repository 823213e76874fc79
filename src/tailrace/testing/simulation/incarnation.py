"""One life of one process: what a crash ends and a pause holds.

Every callback belongs to the incarnation in whose context it was scheduled, by way of a `ContextVar` that tasks and
callbacks inherit. The loop runs nothing of a dead incarnation and keeps what it held, so that no coroutine is closed
and no `finally` runs after death. Callbacks of the world itself (the kernel, the network, the scenario) have no owner.
"""

import asyncio
from collections import deque
from contextvars import Context, ContextVar
from typing import Final

from tailrace.testing.simulation.failures import Dead

owner: Final[ContextVar["Incarnation | None"]] = ContextVar("owner", default=None)


class Incarnation:
    __slots__ = ("alive", "context", "halted", "held", "name", "number")

    def __init__(self, name: str, number: int) -> None:
        self.name = name
        self.number = number
        self.alive = True
        self.halted = False  # dead or paused: nothing of it runs
        self.held: deque[asyncio.Handle] = deque()  # due while halted, oldest first
        self.context = Context()
        self.context.run(owner.set, self)

    def __repr__(self) -> str:
        return f"{self.name}#{self.number}"

    def check(self) -> None:
        """Every port calls this first."""
        if not self.alive:
            raise Dead(f"{self!r} is dead")
