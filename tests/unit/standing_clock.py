"""A clock that moves only when a test sets it."""


class StandingClock:
    def __init__(self) -> None:
        self.now = 0.0  # seconds

    def monotonic(self) -> float:
        return self.now

    def wall_ms(self) -> int:
        return int(self.now * 1000)
