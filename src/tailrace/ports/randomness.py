"""One generator of chance per broker; ids come from it too."""

import random
from typing import Protocol

from tailrace.model.ids import Id


class Random(Protocol):
    def uniform(self, low: float, high: float) -> float: ...

    def below(self, bound: int) -> int:
        """A whole number from 0 to bound - 1."""
        ...

    def new_id(self) -> Id:
        """Sixteen random bytes, never zero, whose text form does not look like a command-line flag."""
        ...


class SeededRandom:
    """Chance from a `random.Random`: the simulator seeds it, the real broker takes the system's."""

    def __init__(self, source: random.Random) -> None:
        self._source = source

    def uniform(self, low: float, high: float) -> float:
        return self._source.uniform(low, high)

    def below(self, bound: int) -> int:
        return self._source.randrange(bound)

    def new_id(self) -> Id:
        raw = bytearray(self._source.getrandbits(8) for _ in range(16))
        raw[6] = raw[6] & 0x0F | 0x40  # version and variant of RFC 9562, which some clients check
        raw[8] = raw[8] & 0x3F | 0x80
        if raw[0] >> 2 == 0b111110:  # its text would begin with "-"
            raw[0] &= 0x7F
        return Id(bytes(raw))


class SystemRandom(SeededRandom):
    """Ids from the system. Waits and jitter need nobody's guess to be hard, and are drawn for each event: from here."""

    def __init__(self) -> None:
        super().__init__(random.SystemRandom())
        self._quick = random.Random()

    def uniform(self, low: float, high: float) -> float:
        return self._quick.uniform(low, high)
