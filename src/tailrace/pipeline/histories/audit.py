"""`audit`: does a history hold every record that was archived, once, in order, unchanged?

The audit checks the consistency of the Delta log, then the checksums of every file, then offsets and sequences in the
undamaged files and, if brokers are given, the records that the live log still has. Each finding names file, partition
and offsets where they are known.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tailrace.pipeline.access import Access
from tailrace.pipeline.histories.coverage import (
    edge_findings,
    explained_spans,
    offset_findings,
    range_findings,
    sequence_findings,
    unexplained_findings,
)
from tailrace.pipeline.histories.delta_log import Snapshot
from tailrace.pipeline.histories.findings import Audit, Finding, PartitionAudit
from tailrace.pipeline.histories.folder_check import check_folder
from tailrace.pipeline.histories.last_values import last_value_findings
from tailrace.pipeline.histories.live_comparison import Differences, compare_bounds, log_bounds, range_in_log_from
from tailrace.pipeline.histories.manifest import ArchivedRange, HistoryFile
from tailrace.pipeline.histories.reading import files_frame
from tailrace.pipeline.kafka.cleanup_policy import compacted_topics
from tailrace.pipeline.kafka.cluster import TopicPartition
from tailrace.pipeline.kafka.offsets import Offsets
from tailrace.pipeline.kafka_settings import BROKERS_NAME, KAFKA_PREFIX
from tailrace.pipeline.option_names import NO_OPTIONS, access_of, with_bootstrap
from tailrace.pipeline.tasks import run_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def audit(
    spark: "SparkSession", path: str | Path, *, bootstrap: str = "", options: Mapping[str, str] = NO_OPTIONS
) -> Audit:
    """Check a history and, if brokers are given, compare it with the live log; `options` are for the connection."""
    folder = Path(path).absolute()
    first = check_folder(folder)
    snapshot = first.snapshot
    findings = [*first.findings, *range_findings(snapshot.ranges), *unexplained_findings(snapshot.ranges)]
    bad = _file_findings(spark, folder, snapshot)
    findings += bad.values()
    findings += _record_findings(spark, folder, snapshot, bad)
    notes = [*first.notes, *_quarantine_notes(snapshot.ranges)]
    live = LiveAudit()
    if bootstrap:
        own = {name: value for name, value in options.items() if name.lower().startswith(KAFKA_PREFIX)}
        live = _live_audit(spark, folder, snapshot, bad, with_bootstrap(bootstrap, own))
    return Audit(
        history=str(folder),
        partitions=tuple(_partitions(snapshot.ranges, live.compacted)),
        findings=(*findings, *live.findings),
        notes=(*notes, *live.notes),
        files=len(snapshot.live),
        compared=live.compared,
    )


def _quarantine_notes(ranges: Sequence[ArchivedRange]) -> list[str]:
    said = "could not be read when they were archived; their bytes are in _tailrace/quarantine"
    gaps = [(one.of, gap) for one in ranges for gap in one.gaps if gap.reason == "quarantined"]
    return [f"{of}: offsets {gap.first}…{gap.last} {said}" for of, gap in gaps]


def _file_findings(spark: "SparkSession", folder: Path, snapshot: Snapshot) -> dict[str, Finding]:
    """Findings about missing and damaged files, by path."""
    files = [asdict(file) for file in snapshot.live.values()]
    wrong = run_tasks(spark, "tailrace.pipeline.histories.file_checks:check_file", files, str(folder))
    owners = {file.path: one for one in snapshot.ranges for file in one.files}
    return {path: _of_file(owners[path], snapshot.live[path], what) for path, what in wrong if what}


def _of_file(one: ArchivedRange, file: HistoryFile, wrong: str) -> Finding:
    gone = wrong == "missing"
    return Finding(
        kind="missing file" if gone else "damaged file",
        what=f"{file.count} records were in it" if gone else wrong,
        file=file.path,
        topic=one.topic,
        partition=one.partition,
        first=file.first,
        last=file.last,
    )


def _sound(snapshot: Snapshot, bad: Mapping[str, Finding]) -> Snapshot:
    """The files of the history that are not missing or damaged."""
    return Snapshot(live={path: file for path, file in snapshot.live.items() if path not in bad})


def _record_findings(spark: "SparkSession", folder: Path, snapshot: Snapshot, bad: dict[str, Finding]) -> list[Finding]:
    frame = files_frame(spark, folder, _sound(snapshot, bad))
    owners = {file.path: one.of for one in snapshot.ranges for file in one.files}
    damaged = [(owners[path], finding.first, finding.last) for path, finding in bad.items()]
    explained = explained_spans(snapshot.ranges, damaged)
    return [
        *edge_findings(frame, snapshot.ranges, explained),
        *offset_findings(frame, explained),
        *([] if bad else sequence_findings(frame)),  # records of damaged files would be reported again
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveAudit:
    """The result of the comparison with the live log."""

    findings: Sequence[Finding] = ()
    notes: Sequence[str] = ()
    compared: int = 0  # ranges
    compacted: Mapping[TopicPartition, int] = field(default_factory=dict)  # records that the log does not have any more


def _live_audit(
    spark: "SparkSession",
    folder: Path,
    snapshot: Snapshot,
    bad: Mapping[str, Finding],
    read_options: Mapping[str, str],
) -> LiveAudit:
    access = access_of(read_options[BROKERS_NAME], read_options)
    topics = sorted({one.topic: None for one in snapshot.ranges})
    with access.cluster() as cluster:
        starts, ends, notes = log_bounds(cluster, topics)
        shrinking = compacted_topics(cluster, sorted({of.topic: None for of in starts}))
        findings, more = compare_bounds(snapshot.ends(), starts, ends)
        there = [one for one in snapshot.ranges if _is_there(one, starts, ends)]
        there = [one for one in there if not any(file.path in bad for file in one.files)]
        found = _differences(spark, folder, there, access, shrinking)
        archived = files_frame(spark, folder, _sound(snapshot, bad))
        lost, older = last_value_findings(spark, archived, snapshot.ranges, found.compacted, cluster, read_options)
    return LiveAudit(
        findings=[*findings, *found.findings, *lost],
        notes=[*notes, *more, *older],
        compared=found.compared,
        compacted={of: one.removed for of, one in found.compacted.items()},
    )


def _is_there(one: ArchivedRange, starts: Offsets, ends: Offsets) -> bool:
    return one.of in starts and starts[one.of] <= one.start and one.end <= ends[one.of] and one.start < one.end


def _differences(
    spark: "SparkSession", folder: Path, ranges: Sequence[ArchivedRange], access: Access, shrinking: Sequence[str]
) -> Differences:
    inputs = [one.to_dict() for one in ranges]
    given = {"access": access.to_dict(), "history": str(folder)}
    answers = run_tasks(spark, "tailrace.pipeline.histories.live_comparison:refetch_range", inputs, given)
    found = Differences()
    for one, told in zip(ranges, answers, strict=True):
        if (in_log := range_in_log_from(told)) is not None:
            found.add(one, in_log, is_compacted=one.topic in shrinking)
    return found


def _partitions(ranges: Sequence[ArchivedRange], compacted: Mapping[TopicPartition, int]) -> Iterator[PartitionAudit]:
    for of in sorted({one.of: None for one in ranges}):
        ours = [one for one in ranges if one.of == of]
        explained: dict[str, int] = {}
        for gap in (gap for one in ours for gap in one.gaps):
            explained[gap.reason] = explained.get(gap.reason, 0) + gap.count
        yield PartitionAudit(
            topic=of.topic,
            partition=of.partition,
            start=min(one.start for one in ours),
            end=max(one.end for one in ours),
            records=sum(one.count for one in ours),
            explained=explained,
            compacted=compacted.get(of, 0),
        )
