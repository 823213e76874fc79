"""When each record of a history was archived: the time of the commit that added its offsets.

Every commit of an archive lists the offset ranges it added and the time of the commit. A later compaction replaces the
files but leaves those commits in the log. So the log alone gives the archive time of each offset, and a join with the
records gives the age of each record at that time.

This is a range join, for which Spark would compare every pair. So offsets are grouped into blocks of the average range
length: a range is listed once for each block it touches, which gives at most three times as many rows as ranges, and a
record is compared only with the few ranges of its own block.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tailrace.model.frozen import frozen
from tailrace.pipeline.histories.commit_file import CommitDamaged, actions_of
from tailrace.pipeline.histories.delta_log import commits

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RANGES_MAX: Final = 200_000  # more would not fit every executor's memory: then no archive times are computed
COMMITTED_MS: Final = "committed_ms"
COLUMNS: Final = f"of_topic string, of_partition int, block bigint, start bigint, end bigint, {COMMITTED_MS} bigint"


@frozen
class CommittedRange:
    """Offsets that a commit added to one partition, from `start` to `end`, exclusive."""

    topic: str
    partition: int
    start: int
    end: int
    committed_ms: int


def archive_times(history: Path) -> list[CommittedRange]:
    """The ranges that each commit of an archive added; damaged commits are skipped."""
    found: list[CommittedRange] = []
    for _, path in commits(history):
        with suppress(CommitDamaged):
            for action in actions_of(path):
                found += _added(action.get("commitInfo", {}))
    return found


def _added(info: Mapping[str, Any]) -> list[CommittedRange]:
    return [
        CommittedRange(
            topic=one["topic"], partition=one["partition"], start=one["start"], end=one["end"],
            committed_ms=info["timestamp"],
        )
        for one in info.get("tailrace", {}).get("ranges", ()) if one["start"] < one["end"]
    ]  # fmt: skip


def with_archive_times(frame: "DataFrame", added: Sequence[CommittedRange]) -> "DataFrame":
    """Add a column `committed_ms` to the records; null if the log has no archive time for a record."""
    from pyspark.sql import functions as f

    if not added or len(added) > RANGES_MAX:
        return frame.withColumn(COMMITTED_MS, f.lit(None).cast("bigint"))
    length = block_length(added)
    times = frame.sparkSession.createDataFrame(blocks(added, length), COLUMNS)
    same = (
        (f.col("topic") == f.col("of_topic"))
        & (f.col("partition") == f.col("of_partition"))
        & (f.expr(f"offset div {length}") == f.col("block"))
        & (f.col("offset") >= f.col("start"))
        & (f.col("offset") < f.col("end"))
    )
    return frame.join(f.broadcast(times), same, "left")


def block_length(added: Sequence[CommittedRange]) -> int:
    return max(1, sum(one.end - one.start for one in added) // len(added))


def blocks(added: Sequence[CommittedRange], length: int) -> list[tuple[str, int, int, int, int, int]]:
    """One row per range and block of `length` offsets that the range touches; fields in the order of `COLUMNS`."""
    return [
        (one.topic, one.partition, block, one.start, one.end, one.committed_ms)
        for one in added
        for block in range(one.start // length, (one.end - 1) // length + 1)
    ]
