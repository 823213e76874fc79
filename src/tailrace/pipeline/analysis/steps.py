"""The width of a time line's steps: as narrow as the maximum number of points allows, and a familiar duration.

Records are counted in steps of equal width, so that Spark returns a bounded number of points for any number of
records. A step of 10 s or 15 min is easier to read than a step of 437 s.
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
    """The narrowest step, in seconds, that covers the span with `points_max` + 1 points; whole days above a day."""
    for step in STEPS_S:
        if span_s / step <= points_max:
            return step
    return DAY_S * -(-int(span_s) // (DAY_S * points_max))


def duration_text(seconds: int) -> str:
    """A duration in its two largest units: `90 s` is `1 min 30 s`."""
    parts = []
    for size, name in NAMES:
        number, seconds = divmod(seconds, size)
        if number:
            parts.append(f"{number:,} {name}")
    return " ".join(parts[:2]) or "0 s"
