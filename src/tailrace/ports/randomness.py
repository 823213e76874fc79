"""Random numbers and ids; one generator per broker."""

import random
from typing import Protocol

from tailrace.model.ids import Id


class Random(Protocol):
    def uniform(self, low: float, high: float) -> float: ...

    def below(self, bound: int) -> int:
        """A random integer from 0 to `bound` - 1."""
        ...

    def new_id(self) -> Id:
        """A random id, never `NO_ID`, whose text form does not begin with "-", as command-line flags do."""
        ...


class SeededRandom:
    """Random numbers from a `random.Random`, which the simulator seeds."""

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
        if raw[0] >> 2 == 0b111110:  # the text form would begin with "-"
            raw[0] &= 0x7F
        return Id(bytes(raw))


class SystemRandom(SeededRandom):
    """Ids from the system's entropy. Jitter need not be hard to guess and is drawn often: from a faster generator."""

    def __init__(self) -> None:
        super().__init__(random.SystemRandom())
        self._fast = random.Random()

    def uniform(self, low: float, high: float) -> float:
        return self._fast.uniform(low, high)
