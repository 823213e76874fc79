"""Which callers of a taker may ask the brokers now: as many as there are partitions that may have a message.

A group that locks one message of a partition has nothing to give while one is out. So callers wait here, first come,
first served, until a message of this taker is settled; a caller that asks for an empty queue tells those behind it.
"""

import asyncio
from collections import deque
from contextlib import suppress
from enum import Enum, auto
from math import inf


class Turn(Enum):
    ASK = auto()  # `leave` must be called
    EMPTY = auto()  # another caller, which asked later, found nothing
    LATE = auto()  # messages are out, and it took too long


class _Waiting:
    __slots__ = ("came_at", "gives_up_at", "turn")

    def __init__(self, came_at: float, gives_up_at: float) -> None:
        self.came_at = came_at
        self.gives_up_at = gives_up_at  # when an empty queue is what it gets
        self.turn: asyncio.Future[Turn] = asyncio.get_running_loop().create_future()


class Gate:
    def __init__(self) -> None:
        self.asking = 0
        self.problem: str | None = None  # why the last question failed
        self._waiting: deque[_Waiting] = deque()
        self._empty_at = -inf  # when the last question began whose answer was that there is nothing

    @property
    def is_idle(self) -> bool:
        return not self.asking and not self._waiting

    def has_been_empty(self, since: float) -> bool:
        """Whether a caller has asked since then, and found nothing."""
        return self._empty_at >= since

    async def enter(self, room: int, came_at: float, gives_up_at: float, waits_s: float, *, is_back: bool) -> Turn:
        """Wait for a turn, at most so long. `is_back`: it had one, and goes before the others."""
        if self.asking < room and (is_back or not self._waiting):
            self.asking += 1
            return Turn.ASK
        if self._empty_at >= came_at and waits_s <= 0:
            return Turn.EMPTY
        one = _Waiting(came_at, gives_up_at)
        if is_back:
            self._waiting.appendleft(one)
        else:
            self._waiting.append(one)
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(max(waits_s, 0)):
                    return await one.turn
        except asyncio.CancelledError:
            if _has_turn(one):
                self.asking -= 1
            raise
        finally:
            with suppress(ValueError):
                self._waiting.remove(one)
        if _has_turn(one):  # at the same moment
            return Turn.ASK
        return Turn.EMPTY if self._empty_at >= came_at else Turn.LATE

    def leave(self, room: int) -> None:
        self.asking -= 1
        self.admit(room)

    def admit(self, room: int) -> None:
        while self._waiting and self.asking < room:
            one = self._waiting.popleft()
            if not one.turn.done():
                one.turn.set_result(Turn.ASK)
                self.asking += 1

    def is_empty(self, asked_at: float, now: float) -> None:
        """All partitions were asked, from then on, and had nothing."""
        self._empty_at = max(self._empty_at, asked_at)
        for one in self._waiting:
            if one.came_at <= asked_at and one.gives_up_at <= now and not one.turn.done():
                one.turn.set_result(Turn.EMPTY)


def _has_turn(one: _Waiting) -> bool:
    return one.turn.done() and not one.turn.cancelled() and one.turn.result() is Turn.ASK
