"""A machine's clocks: virtual time with a small drift and an offset; the wall clock jumps on request."""

import random
from typing import Final

from tailrace.testing.simulation.loop import SimLoop
from tailrace.testing.simulation.process import SimProcess
from tailrace.testing.simulation.randomness import Odds

EPOCH_MS: Final = 1_767_225_600_000  # virtual time 0 is the start of the year 2026


class MachineClock:
    def __init__(self, loop: SimLoop, rng: random.Random, odds: Odds) -> None:
        self._loop = loop
        self._rng = rng
        self._rate = 1 + rng.uniform(-odds.clock_drift_max, odds.clock_drift_max)
        self._wall_offset_ms = EPOCH_MS + rng.randint(-odds.clock_offset_max_ms, odds.clock_offset_max_ms)
        self._boot_seconds = rng.uniform(10, 100_000)
        self.jumped_at = -1.0  # when the wall clock was last set, in virtual time; -1: never
        self._highest_before_jump_ms = 0

    def monotonic(self) -> float:
        return self._boot_seconds + self._loop.time() * self._rate

    def wall_ms(self) -> int:
        return self._wall_offset_ms + int(self._loop.time() * self._rate * 1000)

    @property
    def highest_wall_ms(self) -> int:
        """The latest time that the wall clock has ever shown."""
        return max(self._highest_before_jump_ms, self.wall_ms())

    def jump(self, milliseconds: int) -> None:
        """Set the wall clock forward or back, as an operator or NTP does."""
        self.jumped_at = self._loop.time()
        self._highest_before_jump_ms = self.highest_wall_ms
        self._wall_offset_ms += milliseconds

    def rebooted(self) -> None:
        """Restart the monotonic clock at another value, as a reboot does."""
        self._boot_seconds = self._rng.uniform(10, 100_000) - self._loop.time() * self._rate


class SimClock:
    """The clock port of one process."""

    def __init__(self, clock: MachineClock, process: SimProcess) -> None:
        self._clock = clock
        self._process = process

    def monotonic(self) -> float:
        self._process.check_alive()
        return self._clock.monotonic()

    def wall_ms(self) -> int:
        self._process.check_alive()
        return self._clock.wall_ms()
