"""Nobody has the loop for long: who has had it for `TURN_MAX_S` goes on when all others have been served.

Most requests take microseconds. Batches that have to be opened (`log.admission`), regular expressions and very many
partitions take milliseconds, and one frame may bring much of that, or be one of many. Those who wait for their next
turn stand in one line, and each turn of the loop lets one of them go on: however many they are, others are held up by
one of them at most.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from tailrace.ports import Clock

TURN_MAX_S: Final = 0.02
MANY_AT_ONCE: Final = 100  # partitions: a request with more of them may take long


class Turns:
    def __init__(self) -> None:
        self._line: deque[Callable[[], None]] = deque()

    def wait(self, go_on: Callable[[], None]) -> None:
        if not self._line:
            asyncio.get_running_loop().call_soon(self._next)
        self._line.append(go_on)

    def _next(self) -> None:
        go_on = self._line[0]
        try:
            go_on()
        finally:
            self._line.popleft()
            if self._line:
                asyncio.get_running_loop().call_soon(self._next)


class TimeSlice:
    """One client's. Only who says that it is slow is asked how long it took: looking at the clock costs, too."""

    __slots__ = ("_began", "_clock", "_line", "is_slow", "rests")

    def __init__(self, line: Turns, clock: Clock) -> None:
        self._line = line
        self._clock = clock
        self._began = 0.0
        self.is_slow = False
        self.rests = False  # until its next one

    def begin(self, now: float | None = None) -> None:
        self._began = self._clock.monotonic() if now is None else now

    @property
    def is_over(self) -> bool:
        return self._clock.monotonic() - self._began > TURN_MAX_S

    def rest(self, go_on: Callable[[], None]) -> None:
        def rested() -> None:
            self.rests = False
            go_on()

        self.rests = True
        self._line.wait(rested)

    async def next(self) -> None:
        come = asyncio.get_running_loop().create_future()
        self._line.wait(lambda: None if come.done() else come.set_result(None))
        await come
        self.begin()
