"""What time it is."""

import time
from typing import Protocol


class Clock(Protocol):
    def monotonic(self) -> float:
        """Seconds that only grow; the origin means nothing."""
        ...

    def wall_ms(self) -> int:
        """Milliseconds since 1970, as people's clocks show; may jump either way."""
        ...


class SystemClock:
    def monotonic(self) -> float:
        return time.monotonic()

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000
