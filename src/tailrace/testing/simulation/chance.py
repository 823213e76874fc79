"""Chance, split from one seed.

Each purpose and each machine draws from a stream of its own, made from the seed and the stream's name: asking one
stream more often moves none of the others, so a change in one place does not turn a history upside down.
"""

import random
from hashlib import blake2b

from tailrace.model.frozen import frozen


def stream(seed: int, *name: str) -> random.Random:
    key = "/".join((str(seed), *name))
    return random.Random(int.from_bytes(blake2b(key.encode(), digest_size=16).digest(), "big"))


@frozen
class Delay:
    """How long something takes: mostly little, now and then much more."""

    low_seconds: float
    high_seconds: float
    slow_chance: float = 0.0
    slow_seconds: float = 0.0  # up to so long, when it is slow

    def draw(self, chance: random.Random) -> float:
        if self.slow_chance and chance.random() < self.slow_chance:
            return self.high_seconds + chance.random() * (self.slow_seconds - self.high_seconds)
        return self.low_seconds + chance.random() * (self.high_seconds - self.low_seconds)


@frozen
class Odds:
    """How kind the simulated world is when nobody sets a fault."""

    sync: Delay = Delay(low_seconds=0.0001, high_seconds=0.005, slow_chance=0.02, slow_seconds=0.2)
    read: Delay = Delay(low_seconds=0.00005, high_seconds=0.003, slow_chance=0.01, slow_seconds=0.05)
    offload: Delay = Delay(low_seconds=0.00005, high_seconds=0.01, slow_chance=0.01, slow_seconds=0.3)
    link: Delay = Delay(low_seconds=0.00005, high_seconds=0.001, slow_chance=0.005, slow_seconds=0.3)
    # how long TCP waits for a silent peer, and how long it takes to try again after a heal
    silence: Delay = Delay(low_seconds=5.0, high_seconds=40.0)
    retransmit: Delay = Delay(low_seconds=0.01, high_seconds=1.0)
    cold_chance: float = 0.1  # a cached read finds nothing in the cache
    short_chance: float = 0.05  # a cached read finds only its first pages in the cache
    split_chance: float = 0.4  # bytes that could travel together do not
    clock_drift_max: float = 0.0001
    clock_offset_max_ms: int = 500

    def part(self, size: int, chance: random.Random) -> int:
        """How many of `size` bytes stay together: mostly all, else any number, now and then very few."""
        if chance.random() >= self.split_chance:
            return size
        if chance.random() < 0.3:
            size = min(size, 16)
        return 1 + chance.randrange(size)
