"""One process on one machine, from its boot to its crash.

Every callback belongs to the process in whose context it was scheduled: tasks and callbacks inherit the `ContextVar`
`current_process`. The loop runs no callback of a process that is dead or paused. It keeps the callbacks of a dead
process referenced, so that Python neither closes its coroutines nor runs their `finally` blocks: a crash runs no code.
Callbacks of the kernel, of the network and of the scenario itself belong to no process.
"""

import asyncio
from collections import deque
from contextvars import Context, ContextVar
from typing import Final

from tailrace.testing.simulation.failures import Dead

current_process: Final[ContextVar["SimProcess | None"]] = ContextVar("current_process", default=None)


class SimProcess:
    __slots__ = ("alive", "context", "halted", "held", "machine", "number")

    def __init__(self, machine: str, number: int) -> None:
        self.machine = machine
        self.number = number  # of this boot of the machine, from 1
        self.alive = True
        self.halted = False  # dead or paused: none of its callbacks run
        self.held: deque[asyncio.Handle] = deque()  # callbacks that were due while it was halted, oldest first
        self.context = Context()
        self.context.run(current_process.set, self)

    def __repr__(self) -> str:
        return f"{self.machine}#{self.number}"

    def check_alive(self) -> None:
        """Called first by every port, so that a dead process changes nothing."""
        if not self.alive:
            raise Dead(f"{self!r} is dead")
