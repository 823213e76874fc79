"""Compacted topics: does the log still have the last value of each key, and does the history?

Compaction removes a record when a later one of its key supersedes it, and a tombstone some time later. So:

- A record that only the history has is superseded by a later one in the log, or its key was deleted. Then the history
  has the tombstone, unless that was removed before it was archived, at an offset for which the history has no record.
- A record that only the log has was superseded on the replica that the archive read from: replicas compact at different
  times. A partition with one replica has no such records.

Everything else is a loss. While the log is read, it may go on being written and compacted: a record that is looked for
may be superseded by one beyond the offset at which the read ends, and be removed. So suspects are looked for in what
was appended meanwhile, until nothing was.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from tailrace.pipeline.histories.findings import Finding
from tailrace.pipeline.histories.live_comparison import CompactedPartition, differs
from tailrace.pipeline.histories.manifest import ArchivedRange
from tailrace.pipeline.histories.offset_spans import count
from tailrace.pipeline.kafka.cluster import Cluster, TopicPartition
from tailrace.pipeline.kafka.offsets import Offsets, end_offsets, start_offsets
from tailrace.pipeline.source.offset_json import to_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KEY: Final = ["topic", "partition", "key"]
KEYS_DDL: Final = "topic string, partition int, offset bigint, key binary"
RECORDS_DDL: Final = f"{KEYS_DDL}, value binary"
NO_LIMIT: Final = 2**63 - 1
TAIL_READS_MAX: Final = 20
NOT_OF_CONNECTION: Final = ("kafka.isolation.level", "kafka.group.id")
IN_LOG, IN_HISTORY = "log", "history"  # where a suspect is missing

Compacted = Mapping[TopicPartition, CompactedPartition]


def last_value_findings(
    spark: "SparkSession",
    archived: "DataFrame",
    ranges: Sequence[ArchivedRange],
    compacted: Compacted,
    cluster: Cluster,
    options: Mapping[str, str],
) -> tuple[list[Finding], list[str]]:
    """Findings and notes on compacted partitions; `archived`: the history; `options`: those of the connection."""
    if not compacted:
        return [], []
    replicas = cluster.replica_counts(sorted({of.topic: None for of in compacted}))
    findings = [
        differs(of, one.unarchived, f"the log has {count(one.unarchived)} records there that the history lacks")
        for of, one in sorted(compacted.items())
        if one.unarchived and replicas[of] == 1
    ]
    notes = [
        f"{of}: the log has {one.compared - one.removed} of {one.compared} records since it was compacted"
        for of, one in sorted(compacted.items())
        if one.removed
    ]
    suspicious = {
        of: one
        for of, one in compacted.items()
        if not one.is_unreadable and (one.removed or (one.unarchived and replicas[of] > 1))
    }
    if suspicious:
        with TemporaryDirectory(prefix="tailrace-audit-") as aside:
            log = LogFrames(spark, options, aside)
            search = Search(spark, cluster, log, suspicious, {of: replicas[of] > 1 for of in suspicious})
            more, older = search.run(archived, _unseen_upto(ranges, search.end))
        return findings + more, notes + older
    return findings, notes


def _unseen_upto(ranges: Sequence[ArchivedRange], end: Offsets) -> Offsets:
    """Up to which offset of a partition there may have been tombstones that the history does not have."""
    found: Offsets = {}
    archived: Offsets = {}
    for one in ranges:
        archived[one.of] = max(one.end, archived.get(one.of, 0))
        for gap in one.gaps:
            if gap.reason not in ("control", "aborted"):
                found[one.of] = max(gap.last, found.get(one.of, -1))
    return {of: NO_LIMIT if archived.get(of, 0) < end[of] else found.get(of, -1) for of in end}


class LogFrames:
    """Offset ranges of the live log as DataFrames, without batches that cannot be read, which are put aside."""

    def __init__(self, spark: "SparkSession", options: Mapping[str, str], aside: str) -> None:
        self._spark = spark
        connection = {name: value for name, value in options.items() if name.lower() not in NOT_OF_CONNECTION}
        skipping = {"failOnDataLoss": "false", "corruptBatches": "quarantine", "quarantinePath": aside}
        self._options = {**connection, **skipping}

    def read(self, start: Offsets, end: Offsets, ddl: str = KEYS_DDL) -> "DataFrame":
        assigned: dict[str, list[int]] = {}
        for of in sorted(start):
            assigned.setdefault(of.topic, []).append(of.partition)
        reader = self._spark.read.format("tailrace").options(**self._options).schema(ddl)
        reader = reader.option("assign", json.dumps(assigned)).option("startingOffsets", json.dumps(to_json(start)))
        return reader.option("endingOffsets", json.dumps(to_json(end))).load()


class Search:
    """Looks for last values in log and history."""

    def __init__(
        self,
        spark: "SparkSession",
        cluster: Cluster,
        log: LogFrames,
        compacted: Compacted,
        is_replicated: Mapping[TopicPartition, bool],
    ) -> None:
        self._spark, self._cluster, self._log, self._compacted = spark, cluster, log, compacted
        self._unarchived = {of: one.unarchived for of, one in compacted.items() if is_replicated[of] and one.unarchived}
        self._cached: list[DataFrame] = []
        self.start = start_offsets(cluster, sorted(compacted))
        self.end = end_offsets(cluster, sorted(compacted), committed=True)

    def run(self, archived: "DataFrame", unseen_upto: Offsets) -> tuple[list[Finding], list[str]]:
        from pyspark.sql import functions as f

        latest = self._log.read(self.start, self.end).groupBy(KEY).agg(f.max("offset").alias("in_log"))
        suspects = self._gone(archived, self._cache(latest))
        if self._unarchived:
            suspects = suspects.unionByName(self._not_archived(latest))
        try:
            found = self._still_missing(self._cache(suspects), unseen_upto)
        finally:
            for frame in self._cached:
                frame.unpersist()
        return self._findings(found), self._notes(found)

    def _cache(self, frame: "DataFrame") -> "DataFrame":
        self._cached.append(frame.persist())
        return frame

    def _gone(self, archived: "DataFrame", latest: "DataFrame") -> "DataFrame":
        """The last values of keys in the history that the log does not have, and no later record of their keys."""
        from pyspark.sql import functions as f

        names = self._frame([(*of,) for of in self._compacted], "topic string, partition int")
        last = (
            archived.join(f.broadcast(names), ["topic", "partition"])
            .where("key is not null")
            .groupBy(KEY)
            .agg(f.max("offset").alias("offset"), f.max_by(f.col("value").isNull(), "offset").alias("is_tombstone"))
        )
        gone = last.join(latest, KEY, "left").where("not is_tombstone and coalesce(in_log, -1) < offset")
        return gone.select(*KEY, "offset", f.lit(IN_LOG).alias("missing_in"))

    def _not_archived(self, latest: "DataFrame") -> "DataFrame":
        """The last values of keys in the log that the history does not have."""
        from pyspark.sql import functions as f

        rows = [(*of, first, last) for of, those in self._unarchived.items() for first, last in those]
        offsets = self._frame(rows, "topic string, partition int, first bigint, last bigint").select(
            "topic", "partition", f.explode(f.sequence("first", "last")).alias("offset")
        )
        start, end = ({of: all_of[of] for of in self._unarchived} for all_of in (self.start, self.end))
        records = self._log.read(start, end, RECORDS_DDL).join(offsets, ["topic", "partition", "offset"])
        last = records.join(latest, KEY, "left").where("value is not null and coalesce(in_log, -1) <= offset")
        return last.select(*KEY, "offset", f.lit(IN_HISTORY).alias("missing_in"))

    def _still_missing(self, suspects: "DataFrame", unseen_upto: Offsets) -> "list[Missing]":
        """The suspects that no record supersedes that was appended meanwhile, and that retention has not removed."""
        from pyspark.sql import functions as f

        end = self.end
        for _ in range(TAIL_READS_MAX):
            if suspects.isEmpty():
                return []
            begin, end = end, end_offsets(self._cluster, sorted(end), committed=True)
            if begin == end:
                break
            suspects = self._cache(suspects.join(self._log.read(begin, end), KEY, "left_anti"))
        start = start_offsets(self._cluster, sorted(end))
        bounds = [(*of, start[of], unseen_upto[of]) for of in end]
        ddl = "topic string, partition int, start bigint, unseen_upto bigint"
        left = suspects.join(f.broadcast(self._frame(bounds, ddl)), ["topic", "partition"]).where("offset >= start")
        by = (*KEY[:2], "missing_in", f.expr("offset < unseen_upto").alias("may_be_deleted"))
        span = (f.count("*").alias("keys"), f.min("offset").alias("first"), f.max("offset").alias("last"))
        rows = left.groupBy(*by).agg(*span).orderBy(*KEY[:2], "missing_in").collect()
        return [Missing(**row.asDict()) for row in rows]

    def _findings(self, missing: "Sequence[Missing]") -> list[Finding]:
        found = []
        for one in missing:
            if one.missing_in == IN_HISTORY:
                what = f"the log has the last values of {one.keys} keys there, and the history lacks them"
            elif one.may_be_deleted:
                continue
            else:
                what = f"the log has lost the last values of {one.keys} keys there"
            found.append(differs(one.of, [(one.first, one.last)], what))
        return found

    def _notes(self, missing: "Sequence[Missing]") -> list[str]:
        notes = [
            f"{one.of}: the log has no value of {one.keys} keys any more, such as that at offset {one.first}: they may "
            "have been deleted, and the tombstones removed before they were archived"
            for one in missing
            if one.missing_in == IN_LOG and one.may_be_deleted
        ]
        lost = {one.of: one.keys for one in missing if one.missing_in == IN_HISTORY}
        for of, those in self._unarchived.items():
            if older := count(those) - lost.get(of, 0):
                notes.append(
                    f"{of}: the log has {older} records that were superseded, and compacted away on the replica that "
                    "they were archived from"
                )
        return notes

    def _frame(self, rows: Sequence[tuple[object, ...]], ddl: str) -> "DataFrame":
        return self._spark.createDataFrame(list(rows), ddl)


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """Last values of keys of one partition that are missing in the log or in the history."""

    topic: str
    partition: int
    missing_in: str
    may_be_deleted: bool
    keys: int
    first: int  # offsets, both included
    last: int

    @property
    def of(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)
