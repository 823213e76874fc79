"""Cooperative time slices: after 20 ms a request yields, and continues when other connections have been served.

Most requests take microseconds. Batches whose records must be decoded (`log.admission`), regular expressions and
requests with very many partitions take milliseconds, and one frame may hold many of them. Requests that wait for their
next slice are in one queue, and each iteration of the event loop continues one of them: however many wait, other
connections are delayed by one slice at most.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from tailrace.ports import Clock

SLICE_MAX_S: Final = 0.02
MANY_AT_ONCE: Final = 100  # partitions; a request with more of them may take long


class SliceQueue:
    """Requests that have used up their slice and wait for the next one, first in, first out."""

    def __init__(self) -> None:
        self._queue: deque[Callable[[], None]] = deque()

    def wait(self, resume: Callable[[], None]) -> None:
        if not self._queue:
            asyncio.get_running_loop().call_soon(self._next)
        self._queue.append(resume)

    def _next(self) -> None:
        resume = self._queue[0]
        try:
            resume()
        finally:
            self._queue.popleft()
            if self._queue:
                asyncio.get_running_loop().call_soon(self._next)


class TimeSlice:
    """The slice of one connection. Only a request marked `is_slow` has its time checked: reading the clock costs."""

    __slots__ = ("_began", "_clock", "_queue", "is_slow", "rests")

    def __init__(self, queue: SliceQueue, clock: Clock) -> None:
        self._queue = queue
        self._clock = clock
        self._began = 0.0
        self.is_slow = False
        self.rests = False  # the slice is used up, the next one has not begun

    def begin(self, now: float | None = None) -> None:
        self._began = self._clock.monotonic() if now is None else now

    @property
    def is_over(self) -> bool:
        return self._clock.monotonic() - self._began > SLICE_MAX_S

    def rest(self, resume: Callable[[], None]) -> None:
        """Call `resume` when the next slice begins."""

        def rested() -> None:
            self.rests = False
            resume()

        self.rests = True
        self._queue.wait(rested)

    async def next(self) -> None:
        """Wait for the next slice."""
        begun = asyncio.get_running_loop().create_future()
        self._queue.wait(lambda: None if begun.done() else begun.set_result(None))
        await begun
        self.begin()
