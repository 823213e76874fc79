"""Is every offset present once, or explained? Do each producer's sequences go on without jumps back or ahead?

Spark itself reads offsets and sequences, and only those columns. A gap between two adjacent records is compared with
the manifest, which lists offsets that have no record with their reason. Offsets of files that are known to be damaged
are not reported as missing a second time.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from tailrace.pipeline.histories.findings import Finding, Kind
from tailrace.pipeline.histories.manifest import ArchivedRange
from tailrace.pipeline.kafka.cluster import TopicPartition
from tailrace.pipeline.kafka.offsets import Offsets

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Spans = list[tuple[int, int]]  # both ends included, in order
SEQUENCE_COUNT: Final = 2**31


def offset_findings(frame: "DataFrame", explained: dict[TopicPartition, Spans]) -> list[Finding]:
    """Gaps and duplicates between adjacent offsets."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    order = Window.partitionBy("topic", "partition").orderBy("offset")
    steps = frame.select("topic", "partition", "offset", f.lag("offset").over(order).alias("before"))
    found = []
    for row in steps.where("offset - before <> 1").orderBy("topic", "partition", "offset").collect():
        of = TopicPartition(row.topic, row.partition)
        if row.offset == row.before:
            what = "this offset is in the history more than once"
            found.append(_finding("duplicate", what, of, row.offset, row.offset))
        else:
            found += missing(of, row.before + 1, row.offset - 1, explained.get(of, []))
    return found


def edge_findings(
    frame: "DataFrame", ranges: Sequence[ArchivedRange], explained: dict[TopicPartition, Spans]
) -> list[Finding]:
    """Offsets missing before the first record of a partition and after its last."""
    from pyspark.sql import functions as f

    edges = frame.groupBy("topic", "partition").agg(f.min("offset").alias("first"), f.max("offset").alias("last"))
    present = {TopicPartition(row.topic, row.partition): (row["first"], row["last"]) for row in edges.collect()}
    found = []
    for of in sorted({one.of: None for one in ranges}):
        start = min(one.start for one in ranges if one.of == of)
        end = max(one.end for one in ranges if one.of == of)
        first, last = present.get(of, (end, end - 1))
        found += missing(of, start, min(first, end) - 1, explained.get(of, []))
        found += missing(of, max(last + 1, start), end - 1, explained.get(of, [])) if last >= start else []
    return found


def sequence_findings(frame: "DataFrame") -> list[Finding]:
    """Producers number records without gaps: one that advances more than the offset means lost records."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    keys = ("topic", "partition", "producerId", "producerEpoch")
    order = Window.partitionBy(*keys).orderBy("offset")
    numbered = frame.where("producerId >= 0 and sequence >= 0").select(*keys, "offset", "sequence")
    step = f.pmod(f.col("sequence") - f.lag("sequence").over(order), f.lit(SEQUENCE_COUNT))
    steps = numbered.select(*keys, "offset", f.lag("offset").over(order).alias("before"), step.alias("step"))
    wrong = steps.where("before is not null and offset <> before and (step = 0 or step > offset - before)")
    return [
        _finding(
            "producer sequence", f"producer {row.producerId} goes {row.step} numbers further between these offsets",
            TopicPartition(row.topic, row.partition), row.before, row.offset,
        )
        for row in wrong.orderBy("topic", "partition", "offset").collect()
    ]  # fmt: skip


def missing(of: TopicPartition, first: int, last: int, explained: Iterable[tuple[int, int]]) -> list[Finding]:
    """Findings for those offsets from `first` to `last` that are in no explained span."""
    found, at = [], first
    for begin, end in explained:
        if end < at:
            continue
        if begin > last:
            break
        if begin > at:
            found.append(_finding("gap", "records are missing without a reason", of, at, begin - 1))
        at = end + 1
    if at <= last:
        found.append(_finding("gap", "records are missing without a reason", of, at, last))
    return found


def explained_spans(
    ranges: Sequence[ArchivedRange], damaged: Sequence[tuple[TopicPartition, int, int]]
) -> dict[TopicPartition, Spans]:
    """By partition, the offsets not to report as missing: gaps in the manifest, and offsets of damaged files."""
    spans: dict[TopicPartition, Spans] = {}
    for one in ranges:
        spans.setdefault(one.of, []).extend((gap.first, gap.last) for gap in one.gaps)
    for of, first, last in damaged:
        spans.setdefault(of, []).append((first, last))
    return {of: sorted(those) for of, those in spans.items()}


def unexplained_findings(ranges: Sequence[ArchivedRange]) -> list[Finding]:
    """Gaps that the log already had when it was archived, although its topic is not compacted."""
    what = "the log had no records here when they were archived, and its topic is not compacted"
    gaps = [(one.of, gap) for one in ranges for gap in one.gaps if gap.reason == "unexplained"]
    return [_finding("gap", what, of, gap.first, gap.last) for of, gap in gaps]


def range_findings(ranges: Sequence[ArchivedRange]) -> list[Finding]:
    """Ranges whose counts do not add up, or that are not consecutive."""
    found: list[Finding] = []
    ends: Offsets = {}
    for one in sorted(ranges, key=lambda one: (one.of, one.start, one.end)):
        if not one.is_whole:
            what = "records and explained gaps of this range do not add up"
            found.append(_finding("unaccounted range", what, one.of, one.start, one.end - 1))
        before = ends.get(one.of, one.start)
        if one.start > before:
            found.append(_finding("gap", "no commit archived these offsets", one.of, before, one.start - 1))
        elif one.start < before:
            found.append(_finding("duplicate", "two commits archived these offsets", one.of, one.start, before - 1))
        ends[one.of] = max(before, one.end)
    return found


def _finding(kind: Kind, what: str, of: TopicPartition, first: int, last: int) -> Finding:
    return Finding(kind=kind, what=what, topic=of.topic, partition=of.partition, first=first, last=last)
