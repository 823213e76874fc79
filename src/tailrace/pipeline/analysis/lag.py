"""Consumer lag over time, computed from committed offsets.

Committed offsets are records of Kafka's internal topic `__consumer_offsets`, in Kafka's format, which can be archived
like any other topic. The lag at a point in time is the difference between the end of the partition (the offset after
its last record so far) and the group's last committed offset. A group that stopped committing shows a growing lag.

Key: type (0 or 1: an offset), group, topic, partition. Value: version, offset, and fields that are not needed here; a
record without a value (a tombstone) deletes the committed offset.
"""

from itertools import groupby
from typing import TYPE_CHECKING, Final

from tailrace.pipeline.analysis.report import LAG_LINES_MAX, LagLine
from tailrace.pipeline.analysis.tables import ResultTable, expressions, to_result_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COMMITTED_TOPIC: Final = "__consumer_offsets"
TITLE: Final = "Consumer lag in records"
HINT: Final = f"; archive {COMMITTED_TOPIC}, too, to see it"
GROUP_SIZE: Final = "cast(conv(hex(substring(key, 3, 2)), 16, 10) as int)"
TOPIC_SIZE: Final = "cast(conv(hex(substring(key, 5 + group_size, 2)), 16, 10) as int)"
OFFSET: Final = "if(value is null, -1, cast(conv(hex(substring(value, 3, 8)), 16, 10) as bigint))"


def lag(frame: "DataFrame", step_s: int) -> ResultTable:
    """The lag by time, group and topic, in steps of `step_s` seconds."""
    found = _lags(frame, step_s)
    if found is None:
        return ResultTable(title=TITLE + HINT, columns=("time", "consumer_group", "topic", "lag"), rows=())
    timed = found.selectExpr("timestamp_seconds(at) as time", "consumer_group", "topic", "lag")
    return to_result_table(f"{TITLE}, in steps of {step_s} s", timed.orderBy("consumer_group", "topic", "time"))


def lag_lines(frame: "DataFrame", step_s: int) -> tuple[tuple[LagLine, ...], int]:
    """The lag lines of the groups and topics with the largest lag, and how many lines there are in total.

    Each point is the lag at the end of a step, and is placed at the end of the step."""
    from pyspark.sql import functions as f

    lags = _lags(frame, step_s)
    if lags is None:
        return (), 0
    found = lags.persist()  # a small result of an expensive query, used three times
    keys = ["consumer_group", "topic"]
    worst = found.groupBy(*keys).agg(*expressions("max(lag) as worst"))
    shown = worst.orderBy(f.col("worst").desc(), *keys).limit(LAG_LINES_MAX)
    rows = found.join(f.broadcast(shown), keys).orderBy(f.col("worst").desc(), *keys, "at").collect()
    count = worst.count()
    found.unpersist()
    lines = tuple(
        LagLine(group=group, topic=topic, points=tuple(((row["at"] + step_s) * 1000, row.lag) for row in those))
        for (group, topic), those in groupby(rows, lambda row: (row.consumer_group, row.topic))
    )
    return lines, count


def _lags(frame: "DataFrame", step_s: int) -> "DataFrame | None":
    """Columns `at` (the start of a step, in seconds since 1970), `consumer_group`, `topic` and `lag`."""
    commits = _commits(frame, step_s)
    if commits.isEmpty():
        return None
    found = _between(commits, _ends(frame, step_s)).groupBy("at", "consumer_group", "topic")
    return found.agg(*expressions("sum(lag) as lag"))


def _commits(frame: "DataFrame", step_s: int) -> "DataFrame":
    """Each group's last committed offset per partition and step, for the steps in which the group committed."""
    own = frame.where(f"topic = '{COMMITTED_TOPIC}' and hex(substring(key, 1, 2)) in ('0000', '0001')")
    told = (
        own.selectExpr("offset as place", "timestamp", "key", f"{GROUP_SIZE} as group_size", f"{OFFSET} as committed")
        .withColumn("topic_size", expressions(TOPIC_SIZE)[0])
        .selectExpr(
            f"unix_timestamp(timestamp) div {step_s} * {step_s} as at", "place", "committed",
            "cast(substring(key, 5, group_size) as string) as consumer_group",
            "cast(substring(key, 7 + group_size, topic_size) as string) as topic",
            "cast(conv(hex(substring(key, 7 + group_size + topic_size, 4)), 16, 10) as int) as partition",
        )
    )  # fmt: skip
    keys = ("at", "consumer_group", "topic", "partition")
    return told.groupBy(*keys).agg(*expressions("max_by(committed, place) as committed"))


def _ends(frame: "DataFrame", step_s: int) -> "DataFrame":
    """The end offset of each partition at the end of each step in which it received records."""
    timed = frame.selectExpr(f"unix_timestamp(timestamp) div {step_s} * {step_s} as at", "topic", "partition", "offset")
    return timed.groupBy("at", "topic", "partition").agg(*expressions("max(offset) + 1 as end"))


def _between(commits: "DataFrame", ends: "DataFrame") -> "DataFrame":
    """Each group's lag per partition, for every step in which the topic had a record or a commit."""
    from pyspark.sql import Window

    keys = ["consumer_group", "topic", "partition"]
    groups = commits.select(*keys).distinct()
    steps = commits.select("at", "topic").union(ends.select("at", "topic")).distinct()
    grid = groups.join(steps, "topic").join(commits, ["at", *keys], "left").join(ends, ["at", *keys[1:]], "left")
    so_far = Window.partitionBy(*keys).orderBy("at")
    last, highest = expressions("last(committed, true)", "max(end)")
    known = grid.select("at", *keys, last.over(so_far).alias("committed"), highest.over(so_far).alias("end"))
    return known.where("committed >= 0 and end is not null").selectExpr(
        "at", *keys, "greatest(end - committed, 0) as lag"
    )
