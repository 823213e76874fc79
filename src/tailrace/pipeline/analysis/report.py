"""The data of a report, as counted by Spark, independent of how it is drawn.

The number of lines and the number of points per line are bounded, so the data that Spark collects to the driver does
not grow with the history. The topics with the most messages have their own lines; all other topics share one line.
"""

from collections.abc import Sequence
from typing import Final

from tailrace.model.frozen import frozen
from tailrace.pipeline.analysis.tables import ResultTable

TIME_POINTS_MAX: Final = 1_000  # per line, plus one: about as many as a screen has pixels
TOPICS_DRAWN_MAX: Final = 12  # topics with their own line; the others share one line
LAG_LINES_MAX: Final = 12  # the lines with the largest lag
PARTITIONS_DRAWN_MAX: Final = 100  # the largest of each topic; the others share one bar
SHARES: Final = (0.5, 0.9, 0.99)  # percentiles of a delay, over the records of a step

Delays = tuple[int, int, int] | None  # milliseconds, in the order of `SHARES`; None if no record has a delay


@frozen
class TopicTotal:
    topic: str
    messages: int
    bytes: int  # of values
    first_ms: int  # lowest record timestamp, since 1970; -1 if no record has one
    last_ms: int  # highest record timestamp; -1 likewise
    untimed: int  # messages without a timestamp: not on any time line
    clock: str  # who set the timestamps: producers (CreateTime), brokers (LogAppendTime), or both


@frozen
class Step:
    """The records of one time step."""

    at_ms: int  # start of the step, since 1970
    messages: int
    bytes: int
    latency: Delays  # from the header `sent-at` to the record's timestamp
    archive_delay: Delays  # from the record's timestamp to the commit that archived it


@frozen
class TopicLine:
    name: str  # of the topic, or of the line for all other topics
    steps: tuple[Step, ...]  # only steps with records, in order


@frozen
class LagLine:
    group: str
    topic: str
    points: tuple[tuple[int, int], ...]  # (ms since 1970, lag in offsets)


@frozen
class SizeLine:
    name: str  # as in `TopicLine`
    counts: tuple[tuple[int, int], ...]  # (bits of the value size, messages); 0 bits: 0 bytes, n bits: 2ⁿ⁻¹ to 2ⁿ - 1


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
    lag_lines_in_all: int  # `lags` has the first `LAG_LINES_MAX` of them
    tables: tuple[ResultTable, ...]


def span_ms(of: Sequence[TopicTotal]) -> tuple[int, int]:
    """The lowest and highest timestamp of all topics, in ms since 1970; both 0 if no record has a timestamp."""
    timed = [one for one in of if one.first_ms >= 0]
    return min((one.first_ms for one in timed), default=0), max((one.last_ms for one in timed), default=0)
