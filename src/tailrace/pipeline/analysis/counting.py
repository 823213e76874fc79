"""The numbers in a report, counted by Spark: each takes one pass over the records and returns a bounded number of rows.

Times are the records' timestamps: `CreateTime` (the producer's clock) or `LogAppendTime` (the broker's clock), as
configured for each topic. Records without a timestamp (-1) are not on any time line, and are counted separately.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from tailrace.pipeline.analysis.archive_times import COMMITTED_MS, CommittedRange, with_archive_times
from tailrace.pipeline.analysis.report import (
    SHARES,
    TIME_POINTS_MAX,
    TOPICS_DRAWN_MAX,
    Delays,
    PartitionShare,
    SizeLine,
    Step,
    TopicLine,
    TopicTotal,
    span_ms,
)
from tailrace.pipeline.analysis.steps import step_for
from tailrace.pipeline.analysis.tables import SENT_AT, VALUE_SIZE, ResultTable, expressions
from tailrace.pipeline.histories.manifest import ArchivedRange

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

MS_A_SECOND: Final = 1_000
TIME_MS: Final = "unix_millis(timestamp)"
IS_TIMED: Final = f"{TIME_MS} >= 0"
CLOCKS: Final = {(0, 0): "producers (CreateTime)", (1, 1): "brokers (LogAppendTime)"}
CLOCKS_MIXED: Final = "producers, brokers later or before"


def totals(frame: "DataFrame") -> tuple[TopicTotal, ...]:
    """The totals of each topic; the topic with the most messages comes first."""
    counted = frame.groupBy("topic").agg(
        *expressions(
            "count(*) as messages", f"sum({VALUE_SIZE}) as bytes", f"min(if({IS_TIMED}, {TIME_MS}, null)) as first_ms",
            f"max({TIME_MS}) as last_ms", f"count_if(not {IS_TIMED}) as untimed", "min(timestampType) as lowest",
            "max(timestampType) as highest",
        )
    )  # fmt: skip
    found = [
        TopicTotal(
            topic=row.topic,
            messages=row.messages,
            bytes=row.bytes,
            first_ms=row.last_ms if row.first_ms is None else row.first_ms,
            last_ms=row.last_ms,
            untimed=row.untimed,
            clock=CLOCKS.get((row.lowest, row.highest), CLOCKS_MIXED),
        )
        for row in counted.collect()
    ]
    return tuple(sorted(found, key=lambda one: (-one.messages, one.topic)))


def step_of_report(of: Sequence[TopicTotal]) -> int:
    """The shortest step, in seconds, with which a line has at most `TIME_POINTS_MAX` + 1 points."""
    first_ms, last_ms = span_ms(of)
    return step_for((last_ms - first_ms) / MS_A_SECOND, TIME_POINTS_MAX)


def topic_lines(
    frame: "DataFrame", step_s: int, of: Sequence[TopicTotal], added: Sequence[CommittedRange]
) -> tuple[TopicLine, ...]:
    """Messages, bytes and delays per topic and time step."""
    step_ms, shares = step_s * MS_A_SECOND, ", ".join(map(str, SHARES))
    timed = with_archive_times(frame.where(IS_TIMED), added)
    stepped = timed.select(
        _drawn(of).alias("name"),
        *expressions(
            f"{TIME_MS} div {step_ms} * {step_ms} as at_ms", f"{VALUE_SIZE} as size", f"{TIME_MS} - {SENT_AT} as late",
            f"{COMMITTED_MS} - {TIME_MS} as waited",
        ),
    )  # fmt: skip
    counted = stepped.groupBy("name", "at_ms").agg(
        *expressions(
            "count(*) as messages", "sum(size) as bytes", f"percentile_approx(late, array({shares})) as late",
            f"percentile_approx(waited, array({shares})) as waited",
        )
    )  # fmt: skip
    return tuple(
        TopicLine(name=name, steps=tuple(map(_step, rows)))
        for name, rows in _by_name(counted.orderBy("at_ms").collect(), of)
    )


def size_lines(frame: "DataFrame", of: Sequence[TopicTotal]) -> tuple[SizeLine, ...]:
    """The number of messages per topic and value size, in powers of two."""
    bits = expressions(f"if({VALUE_SIZE} = 0, 0, length(bin({VALUE_SIZE}))) as bits")
    counted = frame.select(_drawn(of).alias("name"), *bits).groupBy("name", "bits").count()
    return tuple(
        SizeLine(name=name, counts=tuple((row.bits, row["count"]) for row in rows))
        for name, rows in _by_name(counted.orderBy("bits").collect(), of)
    )


def partition_shares(ranges: Sequence[ArchivedRange]) -> tuple[PartitionShare, ...]:
    """The number of messages in each archived partition, from the history's log, which lists empty partitions too."""
    counts: dict[tuple[str, int], int] = {}
    for one in ranges:
        counts[one.topic, one.partition] = counts.get((one.topic, one.partition), 0) + one.count
    return tuple(
        PartitionShare(topic=topic, partition=partition, messages=count)
        for (topic, partition), count in sorted(counts.items())
    )


def partitions(shares: Sequence[PartitionShare]) -> ResultTable:
    """How records are distributed over partitions: a share of 1 is even, and a hot partition has more."""
    rows = []
    for _, those in groupby(shares, lambda one: one.topic):
        ours = list(those)
        even = sum(one.messages for one in ours) / len(ours) or 1.0
        rows += [(f"{one.topic}-{one.partition}", one.messages, round(one.messages / even, 3)) for one in ours]
    return ResultTable(title="Partitions", columns=("partition", "records", "share"), rows=tuple(rows))


def others_name(of: Sequence[TopicTotal]) -> str:
    """The name of the line for all topics without their own line. It has a space, so it cannot be a topic name."""
    return f"{len(of) - TOPICS_DRAWN_MAX} other topics"


def _drawn(of: Sequence[TopicTotal]) -> "Column":
    """The topic if it has its own line, else null."""
    from pyspark.sql import functions as f

    return f.when(f.col("topic").isin([one.topic for one in of[:TOPICS_DRAWN_MAX]]), f.col("topic"))


def _by_name(rows: Iterable[Any], of: Sequence[TopicTotal]) -> list[tuple[str, list[Any]]]:
    """Group rows by line, keeping their order. Lines are in the order of `of`; the line for other topics is last."""
    places = {one.topic: place for place, one in enumerate(of[:TOPICS_DRAWN_MAX])}
    placed = sorted(rows, key=lambda row: places.get(row.name, TOPICS_DRAWN_MAX))
    return [(name or others_name(of), list(those)) for name, those in groupby(placed, lambda row: row.name)]


def _step(row: Any) -> Step:
    return Step(
        at_ms=row.at_ms,
        messages=row.messages,
        bytes=row.bytes,
        latency=_delays(row.late),
        archive_delay=_delays(row.waited),
    )


def _delays(found: Sequence[int] | None) -> Delays:
    if found is None:
        return None
    low, middle, high = found
    return low, middle, high
