"""Random streams that are derived from one seed, and the probabilities and delays of a simulated world.

Each purpose and each machine draws from a stream of its own, which is seeded with a hash of the world's seed and the
stream's name. More draws in one stream leave all other streams as they were, so a change in one part of the code does
not change every later event of a history. The names of the streams are therefore part of what a seed means.
"""

import random
from hashlib import blake2b

from tailrace.model.frozen import frozen


def random_stream(seed: int, *name: str) -> random.Random:
    key = "/".join((str(seed), *name))
    return random.Random(int.from_bytes(blake2b(key.encode(), digest_size=16).digest(), "big"))


@frozen
class Delay:
    """How long something takes: usually between `low_seconds` and `high_seconds`, sometimes up to `slow_seconds`."""

    low_seconds: float
    high_seconds: float
    slow_chance: float = 0.0
    slow_seconds: float = 0.0

    def draw(self, rng: random.Random) -> float:
        if self.slow_chance and rng.random() < self.slow_chance:
            return self.high_seconds + rng.random() * (self.slow_seconds - self.high_seconds)
        return self.low_seconds + rng.random() * (self.high_seconds - self.low_seconds)


@frozen
class Odds:
    """Delays and probabilities of the simulated world while no fault is injected."""

    sync: Delay = Delay(low_seconds=0.0001, high_seconds=0.005, slow_chance=0.02, slow_seconds=0.2)
    read: Delay = Delay(low_seconds=0.00005, high_seconds=0.003, slow_chance=0.01, slow_seconds=0.05)
    offload: Delay = Delay(low_seconds=0.00005, high_seconds=0.01, slow_chance=0.01, slow_seconds=0.3)
    link: Delay = Delay(low_seconds=0.00005, high_seconds=0.001, slow_chance=0.005, slow_seconds=0.3)
    silence: Delay = Delay(low_seconds=5.0, high_seconds=40.0)  # until TCP gives up on a peer that does not answer
    tls: Delay = Delay(low_seconds=0.001, high_seconds=0.01, slow_chance=0.02, slow_seconds=1.0)  # a TLS handshake
    tls_failure_chance: float = 0.01  # that a TLS handshake fails
    worker_lost_chance: float = 0.003  # that a session's worker process ends in a call
    retransmit: Delay = Delay(low_seconds=0.01, high_seconds=1.0)  # until TCP sends again after a partition heals
    cold_chance: float = 0.1  # that a cached read finds nothing in the page cache
    short_chance: float = 0.05  # that a cached read finds only its first pages in the page cache
    split_chance: float = 0.4  # that bytes which could travel or be read together are split
    clock_drift_max: float = 0.0001
    clock_offset_max_ms: int = 500

    def part(self, size: int, rng: random.Random) -> int:
        """How many of `size` bytes stay together: usually all, otherwise any number, sometimes at most 16."""
        if rng.random() >= self.split_chance:
            return size
        if rng.random() < 0.3:
            size = min(size, 16)
        return 1 + rng.randrange(size)
