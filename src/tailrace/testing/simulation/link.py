"""One direction of a TCP connection: bytes arrive in order, in pieces of any size, with delays.

A piece arrives when its delay is over, and never before the piece ahead of it. While the direction is cut, the link
stalls: once the cut is healed it goes on after a retransmission delay. If the stall lasts longer than TCP's timeout,
the whole connection times out at both ends.
"""

import random
from collections import deque
from collections.abc import Callable
from contextvars import Context
from typing import Final, Protocol

from tailrace.testing.simulation.loop import SimLoop
from tailrace.testing.simulation.randomness import Odds

WINDOW_MAX_BYTES: Final = 256 * 1024  # sent and not yet read by the peer's process
PIECE_MAX_BYTES: Final = 64 * 1024


class TcpFlag:
    """A flag that travels in order with the bytes."""

    def __init__(self, name: str) -> None:
        self.name = name


END_OF_STREAM: Final = TcpFlag("FIN")
RESET: Final = TcpFlag("RST")


class Receiver(Protocol):
    def arrive(self, item: bytes | TcpFlag) -> None: ...


class Link:
    def __init__(
        self,
        loop: SimLoop,
        rng: random.Random,
        odds: Odds,
        is_cut: Callable[[], bool],
        time_out: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._rng = rng
        self.odds = odds
        self._is_cut = is_cut
        self._time_out = time_out  # the whole connection
        self._kernel = Context()  # what the kernel does belongs to no process
        self._in_flight: deque[tuple[float, bytes | TcpFlag]] = deque()
        self._last_arrival = 0.0
        self._stalls = 0  # stalls begun and ended, together: odd while stalled
        self._has_timer = False  # for the next arrival
        self.receiver: Receiver | None = None
        self.unread_bytes = 0  # in flight, or arrived and not read

    @property
    def room(self) -> int:
        return WINDOW_MAX_BYTES - self.unread_bytes

    def piece(self, available: int) -> int:
        """How many of the available bytes travel as one piece."""
        return self.odds.part(min(available, PIECE_MAX_BYTES, self.room), self._rng)

    def send(self, item: bytes | TcpFlag) -> None:
        if isinstance(item, bytes):
            self.unread_bytes += len(item)
        self._last_arrival = max(self._last_arrival, self._loop.time() + self.odds.link.draw(self._rng))
        self._in_flight.append((self._last_arrival, item))
        self._set_timer()

    def drop(self) -> None:
        """Lose everything that is in flight."""
        self._in_flight.clear()

    def heal(self) -> None:
        """End a stall if the direction is no longer cut; the bytes arrive after a retransmission delay."""
        if self._is_stalled and not self._is_cut():
            self._stalls += 1
            earliest = self._loop.time() + self.odds.retransmit.draw(self._rng)
            self._in_flight = deque((max(arrival, earliest), item) for arrival, item in self._in_flight)
            self._last_arrival = max(self._last_arrival, earliest)
            self._set_timer()

    @property
    def _is_stalled(self) -> bool:
        return self._stalls % 2 == 1

    def _set_timer(self) -> None:
        if self._in_flight and not self._has_timer and not self._is_stalled:
            self._has_timer = True
            self._loop.call_at(self._in_flight[0][0], self._arrive, context=self._kernel)

    def _arrive(self) -> None:
        self._has_timer = False
        if self._in_flight and self._is_cut():
            self._stall()
        assert self.receiver is not None
        while self._in_flight and not self._is_stalled and self._in_flight[0][0] <= self._loop.time():
            self.receiver.arrive(self._in_flight.popleft()[1])
        self._set_timer()

    def _stall(self) -> None:
        self._stalls += 1
        stall = self._stalls

        def give_up() -> None:
            if self._stalls == stall:
                self._time_out()

        self._loop.call_later(self.odds.silence.draw(self._rng), give_up, context=self._kernel)
