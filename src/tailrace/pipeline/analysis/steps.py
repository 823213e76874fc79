"""How wide the steps of a time line are: as narrow as a bound on their number allows, and of a length people know.

Records are counted in steps of equal width, so that Spark hands over a bounded number of points however many records
there are. A step of 10 s or 15 min is easier to read than one of 437 s.
"""

from typing import Final

MINUTE_S: Final = 60
HOUR_S: Final = 60 * MINUTE_S
DAY_S: Final = 24 * HOUR_S
STEPS_S: Final = (
    1, 2, 5, 10, 15, 30,
    *(MINUTE_S * number for number in (1, 2, 5, 10, 15, 30)),
    *(HOUR_S * number for number in (1, 2, 3, 6, 12)),
    DAY_S,
)  # fmt: skip
NAMES: Final = ((DAY_S, "d"), (HOUR_S, "h"), (MINUTE_S, "min"), (1, "s"))


def step_for(span_s: float, points_max: int) -> int:
    """The narrowest step, in seconds, of which so many and one more cover the span; above a day, whole days."""
    for step in STEPS_S:
        if span_s / step <= points_max:
            return step
    return DAY_S * -(-int(span_s) // (DAY_S * points_max))


def spoken(seconds: int) -> str:
    """A duration in its two largest units: `90 s` is `1 min 30 s`."""
    parts = []
    for size, name in NAMES:
        number, seconds = divmod(seconds, size)
        if number:
            parts.append(f"{number:,} {name}")
    return " ".join(parts[:2]) or "0 s"
