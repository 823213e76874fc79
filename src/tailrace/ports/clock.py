"""The clock: monotonic time and wall-clock time."""

import time
from typing import Protocol


class Clock(Protocol):
    def monotonic(self) -> float:
        """Seconds that never decrease, from an arbitrary origin."""
        ...

    def wall_ms(self) -> int:
        """Milliseconds since 1970 by the wall clock, which may jump in either direction."""
        ...


class SystemClock:
    def monotonic(self) -> float:
        return time.monotonic()

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000
