"""A callback on the simulated loop, waiting for its turn."""

import asyncio
from collections.abc import Callable
from contextvars import Context
from typing import Any, Protocol

from tailrace.testing.simulation.incarnation import owner


class Sweeping(Protocol):
    """What a handle knows of its loop."""

    def time(self) -> float: ...

    def timer_cancelled(self) -> None: ...


class SimHandle(asyncio.TimerHandle):
    """Made for each callback, so it is kept light: none of asyncio's own fields but `_cancelled` is set."""

    __slots__ = ("arguments", "callback", "context", "due", "loop", "owner")

    def __init__(
        self, due: float, callback: Callable[..., object], arguments: Any, context: Context, loop: "Sweeping"
    ) -> None:
        self.due = due
        self.callback = callback
        self.arguments = arguments
        self.context = context
        self.owner = context.get(owner)
        self.loop = loop
        self._cancelled = False

    def __repr__(self) -> str:
        return f"<SimHandle {self.callback!r} of {self.owner!r} at {self.due:.6f}>"

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other

    def when(self) -> float:
        return self.due

    def cancelled(self) -> bool:
        return self._cancelled

    def cancel(self) -> None:
        if not self._cancelled:
            self._cancelled = True
            if self.due > self.loop.time():
                self.loop.timer_cancelled()
