"""What a report shows, as values: Spark has counted, and nothing here depends on how it is drawn.

Every line has a bounded number of points, and there is a bounded number of lines: what Spark hands over to the driver
does not grow with the history. The topics with most messages have lines of their own; all others share one.
"""

from collections.abc import Sequence
from typing import Final

from tailrace.model.frozen import frozen
from tailrace.pipeline.analysis.tables import Answer

TIME_POINTS_MAX: Final = 1_000  # of one line, and one more: about as many as a screen has pixels
TOPICS_DRAWN_MAX: Final = 12  # lines of their own; the others are one line together
LAG_LINES_MAX: Final = 12  # those that were furthest behind
PARTITIONS_DRAWN_MAX: Final = 100  # of one topic, the largest; the others are one bar together
SHARES: Final = (0.5, 0.9, 0.99)  # of the records of a step: percentiles of a delay

Delays = tuple[int, int, int] | None  # milliseconds, by `SHARES`; None where no record has one


@frozen
class TopicTotal:
    topic: str
    messages: int
    bytes: int  # of values
    first_ms: int  # by the records' timestamps, since 1970
    last_ms: int  # -1 for both when no record has one
    untimed: int  # messages without a timestamp: in no time line
    clock: str  # whose: the producers' (CreateTime), the brokers' (LogAppendTime), or both


@frozen
class Step:
    """What came within one step of time."""

    at_ms: int  # its start, since 1970
    messages: int
    bytes: int
    latency: Delays  # from the header `sent-at` to the record's timestamp
    archive_delay: Delays  # from the record's timestamp to the commit that archived it


@frozen
class TopicLine:
    name: str  # of the topic, or of all that have no line of their own
    steps: tuple[Step, ...]  # those in which records came, in order


@frozen
class LagLine:
    group: str
    topic: str
    points: tuple[tuple[int, int], ...]  # ms since 1970, and offsets between what was committed and the end


@frozen
class SizeLine:
    name: str  # as in `TopicLine`
    counts: tuple[tuple[int, int], ...]  # bits of a value's size (0: no bytes; n: 2ⁿ⁻¹ to 2ⁿ - 1), and how many


@frozen
class PartitionShare:
    topic: str
    partition: int
    messages: int


@frozen
class Report:
    history: str
    step_s: int
    totals: tuple[TopicTotal, ...]
    lines: tuple[TopicLine, ...]
    sizes: tuple[SizeLine, ...]
    partitions: tuple[PartitionShare, ...]
    lags: tuple[LagLine, ...]
    lag_lines_in_all: int  # of which the first `LAG_LINES_MAX` are in `lags`
    tables: tuple[Answer, ...]


def span_ms(of: Sequence[TopicTotal]) -> tuple[int, int]:
    """The first and the last timestamp of all topics, in ms since 1970; 0 and 0 when no record has one."""
    timed = [one for one in of if one.first_ms >= 0]
    return min((one.first_ms for one in timed), default=0), max((one.last_ms for one in timed), default=0)
