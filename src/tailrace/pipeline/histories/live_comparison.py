"""Compare a history with the live log that it was archived from, as far back as the log still goes.

The same offsets are fetched again, including those where the history has no record, and their content checksum is
computed in the same way as for the archive. Where it differs, the records are compared one by one: a compacted log may
have fewer records than the history; anything else is a difference.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from tailrace.pipeline.access import access_from
from tailrace.pipeline.failure import DataLost, NoSuchTopic
from tailrace.pipeline.histories.checksum import ContentChecksum
from tailrace.pipeline.histories.findings import Finding
from tailrace.pipeline.histories.manifest import ArchivedRange, archived_range_from
from tailrace.pipeline.histories.offset_spans import Spans, count
from tailrace.pipeline.histories.record_comparison import RangeDifference, compare_records
from tailrace.pipeline.histories.writing import by_day
from tailrace.pipeline.kafka.cluster import Cluster, TopicPartition
from tailrace.pipeline.kafka.damaged import Damaged, decode_response
from tailrace.pipeline.kafka.fetching import OffsetRange, fetch
from tailrace.pipeline.kafka.offsets import Offsets, end_offsets, start_offsets


@dataclass(frozen=True, slots=True, kw_only=True)
class DayInLog:
    """The records of one day in a range that the live log has now."""

    topic: str
    partition: int
    path: str = ""  # of the history's file for this day; empty when there is none
    count: int = 0
    content: int = 0  # checksum of the records
    first: int = -1  # offsets, both included; -1 when there is none
    last: int = -1


def refetch_days(cluster: Cluster, one: ArchivedRange) -> list[DayInLog]:
    """What the live log has now for a range, for each day that has a file and each day that should have one."""
    sums: dict[str, ContentChecksum] = {}
    offsets: dict[str, tuple[int, int, int]] = {}  # by date: number of records, first offset, last offset
    requested = OffsetRange(partition=one.of, start=one.start, end=one.end)
    for visible in fetch(cluster, requested, committed=True, on_damaged=_skip_damaged):
        for columns in decode_response(visible, one.of, _skip_damaged, headers=True):
            inside = columns.within(one.start, one.end)
            for date, table, places in by_day(inside, one.partition) if len(inside) else ():
                first, last = int(inside.offset[places[0]]), int(inside.offset[places[-1]])
                sums.setdefault(date, ContentChecksum()).add(table)
                count, before, _ = offsets.get(date, (0, first, last))
                offsets[date] = (count + len(table), before, last)
    paths = {file.date: file.path for file in one.files}
    day = partial(DayInLog, topic=one.topic, partition=one.partition)
    found = [
        day(path=paths.get(date, ""), count=count, content=sums[date].value, first=first, last=last)
        for date, (count, first, last) in sorted(offsets.items())
    ]
    return found + [day(path=path) for date, path in paths.items() if date not in offsets]


def _skip_damaged(_: Damaged) -> None:
    """Skip a damaged batch: its records then count as missing from the log, and are reported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeInLog:
    """What the live log has now for a range; `difference` only if a day differs from its file."""

    days: list[DayInLog]
    difference: RangeDifference | None = None


def range_in_log(cluster: Cluster, one: ArchivedRange, folder: Path) -> RangeInLog | None:
    """What the live log has now for a range; None if retention has removed some of its offsets meanwhile."""
    try:
        days = refetch_days(cluster, one)
        files = {file.path: file for file in one.files}
        if all(day.path and day.content == files[day.path].content for day in days):
            return RangeInLog(days=days)
        return RangeInLog(days=days, difference=compare_records(cluster, one, folder))
    except DataLost:
        if start_offsets(cluster, [one.of])[one.of] <= one.start:
            raise
        return None


def refetch_range(told: dict[str, Any], given: dict[str, Any]) -> dict[str, Any] | None:
    """For `run_tasks`: return what the live log has for a range, in the form that `range_in_log_from` reads."""
    with access_from(given["access"]).cluster() as cluster:
        found = range_in_log(cluster, archived_range_from(told), Path(given["history"]))
    return None if found is None else asdict(found)


def range_in_log_from(told: dict[str, Any] | None) -> RangeInLog | None:
    if told is None:
        return None
    given = told["difference"]
    difference = None
    if given is not None:
        lost = {name: [(first, last) for first, last in given[name]] for name in ("unlike", "unarchived", "unreadable")}
        difference = RangeDifference(**{**given, **lost})
    return RangeInLog(days=[DayInLog(**day) for day in told["days"]], difference=difference)


@dataclass(slots=True, kw_only=True)
class CompactedPartition:
    """What a comparison has found of a partition whose log was compacted."""

    compared: int = 0  # records in the history
    removed: int = 0  # those of them that the log does not have any more
    is_unreadable: bool = False  # whether the log has batches that cannot be read
    unarchived: Spans = field(default_factory=list)  # offsets whose records the history does not have


@dataclass(slots=True)
class Differences:
    findings: list[Finding] = field(default_factory=list)
    compacted: dict[TopicPartition, CompactedPartition] = field(default_factory=dict)
    compared: int = 0  # ranges

    def add(self, one: ArchivedRange, found: RangeInLog, *, is_compacted: bool) -> None:
        """Add the comparison of one range; `is_compacted`: whether its topic's `cleanup.policy` includes compact."""
        self.compared += 1
        difference = found.difference
        if is_compacted or (difference is not None and difference.removed and not difference.in_no_batch):
            self._add_compacted(one, difference)
        elif difference is not None:
            self.findings += _differing_days(one, found.days)

    def _add_compacted(self, one: ArchivedRange, difference: RangeDifference | None) -> None:
        partition = self.compacted.setdefault(one.of, CompactedPartition())
        partition.compared += one.count
        if difference is None:
            return
        partition.removed += difference.removed
        partition.unarchived += difference.unarchived
        partition.is_unreadable |= bool(difference.unreadable)
        for those, what in (
            (difference.unlike, "the log has {} records there, and not the same"),
            (difference.unreadable, "the log has batches there that cannot be read, and the history {} records"),
        ):
            if those:
                self.findings.append(differs(one.of, those, what.format(count(those)), one))


def differs(of: TopicPartition, those: Spans, what: str, one: ArchivedRange | None = None) -> Finding:
    """The finding that these offsets differ; it names the file if the range has only one."""
    return Finding(
        kind="differs from the log", what=what, file=one.files[0].path if one and len(one.files) == 1 else "",
        topic=of.topic, partition=of.partition, first=those[0][0], last=those[-1][1],
    )  # fmt: skip


def _differing_days(one: ArchivedRange, days: Sequence[DayInLog]) -> list[Finding]:
    files = {file.path: file for file in one.files}
    findings = []
    for day in days:
        file = files.get(day.path)
        if file is None:
            findings.append(_differs(day, f"the log has {day.count} records of a day here, and the history none"))
        elif day.content != file.content:
            first, last = (
                (min(day.first, file.first), max(day.last, file.last)) if day.count else (file.first, file.last)
            )
            what = f"the log has {day.count} records there, and not the same"
            findings.append(_differs(replace(day, first=first, last=last), what))
    return findings


def _differs(day: DayInLog, what: str) -> Finding:
    return Finding(
        kind="differs from the log", what=what, file=day.path,
        topic=day.topic, partition=day.partition, first=day.first, last=day.last,
    )  # fmt: skip


def log_bounds(cluster: Cluster, topics: Sequence[str]) -> tuple[Offsets, Offsets, list[str]]:
    """The start and end offsets of these topics, and notes on topics that do not exist."""
    starts: Offsets = {}
    ends: Offsets = {}
    notes = []
    for topic in topics:
        try:
            partitions = cluster.partitions([topic])
        except NoSuchTopic:
            notes.append(f"topic {topic} is not on the broker any more: its history was checked by itself")
            continue
        starts |= start_offsets(cluster, partitions)
        ends |= end_offsets(cluster, partitions, committed=False)
    return starts, ends, notes


def compare_bounds(archived: Offsets, starts: Offsets, ends: Offsets) -> tuple[list[Finding], list[str]]:
    findings, notes = [], []
    for of, end in sorted(archived.items()):
        if of not in ends:
            continue
        if end > ends[of]:
            what = f"the log ends at {ends[of]}: it was truncated, or the topic was deleted and created again"
            findings.append(_ahead_of_log(of, ends[of], end - 1, what))
        elif starts[of] > end:
            notes.append(f"{of}: offsets {end}…{starts[of] - 1} were removed before they were archived")
        elif end < ends[of]:
            notes.append(f"{of}: {ends[of] - end} offsets are not archived yet")
    return findings, notes


def _ahead_of_log(of: TopicPartition, first: int, last: int, what: str) -> Finding:
    return Finding(kind="ahead of the log", what=what, topic=of.topic, partition=of.partition, first=first, last=last)
