"""One direction of a TCP connection: bytes in order, in pieces of any size, late.

A piece arrives when its delay is over, never before the piece ahead of it. Where the way is cut it stalls: after a heal
it goes on, after too long a silence the connection is given up on both sides, each by itself.
"""

import random
from collections import deque
from collections.abc import Callable
from contextvars import Context
from typing import Final, Protocol

from tailrace.testing.simulation.chance import Odds
from tailrace.testing.simulation.loop import SimLoop

WINDOW_MAX_BYTES: Final = 256 * 1024  # sent and not yet read
PIECE_MAX_BYTES: Final = 64 * 1024


class Mark:
    """Something that travels among the bytes."""

    def __init__(self, name: str) -> None:
        self.name = name


END_OF_STREAM: Final = Mark("FIN")
RESET: Final = Mark("RST")


class Receiver(Protocol):
    def arrive(self, item: bytes | Mark) -> None: ...


class Link:
    def __init__(
        self,
        loop: SimLoop,
        chance: random.Random,
        odds: Odds,
        is_cut: Callable[[], bool],
        give_up: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._chance = chance
        self.odds = odds
        self._is_cut = is_cut
        self._give_up = give_up
        self._kernel = Context()
        self._under_way: deque[tuple[float, bytes | Mark]] = deque()
        self._last_arrival = 0.0
        self._stalls = 0  # odd while stalled
        self._armed = False
        self.receiver: Receiver | None = None
        self.unread_bytes = 0  # under way, or arrived and not read

    @property
    def room(self) -> int:
        return WINDOW_MAX_BYTES - self.unread_bytes

    def piece(self, available: int) -> int:
        """How many of the bytes at hand travel together."""
        return self.odds.part(min(available, PIECE_MAX_BYTES, self.room), self._chance)

    def send(self, item: bytes | Mark) -> None:
        if isinstance(item, bytes):
            self.unread_bytes += len(item)
        self._last_arrival = max(self._last_arrival, self._loop.time() + self.odds.link.draw(self._chance))
        self._under_way.append((self._last_arrival, item))
        self._arm()

    def drop(self) -> None:
        """What is under way never arrives."""
        self._under_way.clear()

    def heal(self) -> None:
        """The way may be free again: go on after a while, as a retransmission does."""
        if self._stalls % 2 and not self._is_cut():
            self._stalls += 1
            back = self._loop.time() + self.odds.retransmit.draw(self._chance)
            self._under_way = deque((max(arrival, back), item) for arrival, item in self._under_way)
            self._last_arrival = max(self._last_arrival, back)
            self._arm()

    def _arm(self) -> None:
        if self._under_way and not self._armed and not self._stalls % 2:
            self._armed = True
            self._loop.call_at(self._under_way[0][0], self._arrive, context=self._kernel)

    def _arrive(self) -> None:
        self._armed = False
        if self._under_way and self._is_cut():
            self._stall()
        assert self.receiver is not None
        while self._under_way and not self._stalls % 2 and self._under_way[0][0] <= self._loop.time():
            self.receiver.arrive(self._under_way.popleft()[1])
        self._arm()

    def _stall(self) -> None:
        self._stalls += 1
        stall = self._stalls

        def too_long() -> None:
            if self._stalls == stall:
                self._give_up()

        self._loop.call_later(self.odds.silence.draw(self._chance), too_long, context=self._kernel)
