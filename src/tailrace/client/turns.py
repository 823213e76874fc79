"""Work that is done in turns of the loop: in the next one after somebody wakes it, and when its time has come."""

import asyncio
from collections.abc import Callable
from math import inf


class Turns:
    """`turn` does what is due, and returns when there will be more, infinity if nobody knows. However often it is woken
    before its turn, it has one."""

    def __init__(self, turn: Callable[[], float], now: Callable[[], float]) -> None:
        self._turn = turn
        self._now = now
        self._loop: asyncio.AbstractEventLoop | None = None  # None: nothing was started yet, or all has ended
        self._is_next = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = inf

    @property
    def has_started(self) -> bool:
        return self._loop is not None

    def start(self) -> None:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()

    def stop(self) -> None:
        self._loop = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def wake(self) -> None:
        if not self._is_next and self._loop is not None:
            self._is_next = True
            self._loop.call_soon(self._take)

    def _take(self) -> None:
        self._is_next = False
        if self._loop is None:
            return
        due_at = self._turn()
        if due_at < self._timer_at:  # otherwise the timer comes first, and finds out when to come again
            if self._timer is not None:
                self._timer.cancel()
            self._timer_at = due_at
            self._timer = self._loop.call_later(max(0.0, due_at - self._now()), self._timer_due)

    def _timer_due(self) -> None:
        self._timer, self._timer_at = None, inf
        self._take()
