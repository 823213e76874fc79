"""A machine's clocks: virtual time, a little fast or slow, shifted, and jumping when told."""

import random
from typing import Final

from tailrace.testing.simulation.chance import Odds
from tailrace.testing.simulation.incarnation import Incarnation
from tailrace.testing.simulation.loop import SimLoop

EPOCH_MS: Final = 1_767_225_600_000  # simulations begin with the year 2026


class MachineClock:
    def __init__(self, loop: SimLoop, chance: random.Random, odds: Odds) -> None:
        self._loop = loop
        self._chance = chance
        self._rate = 1 + chance.uniform(-odds.clock_drift_max, odds.clock_drift_max)
        self._wall_offset_ms = EPOCH_MS + chance.randint(-odds.clock_offset_max_ms, odds.clock_offset_max_ms)
        self._boot_seconds = chance.uniform(10, 100_000)

    def monotonic(self) -> float:
        return self._boot_seconds + self._loop.time() * self._rate

    def wall_ms(self) -> int:
        return self._wall_offset_ms + int(self._loop.time() * self._rate * 1000)

    def jump(self, milliseconds: int) -> None:
        """Set people's clock forward or back, as an operator or NTP does."""
        self._wall_offset_ms += milliseconds

    def rebooted(self) -> None:
        """The monotonic clock starts somewhere else."""
        self._boot_seconds = self._chance.uniform(10, 100_000) - self._loop.time() * self._rate


class SimClock:
    """One process's view of its machine's clocks."""

    def __init__(self, clock: MachineClock, process: Incarnation) -> None:
        self._clock = clock
        self._process = process

    def monotonic(self) -> float:
        self._process.check()
        return self._clock.monotonic()

    def wall_ms(self) -> int:
        self._process.check()
        return self._clock.wall_ms()
