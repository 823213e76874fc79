"""A history held against the log it came from, as far as the log still reaches back.

The same offsets are fetched again, and the checksum of their content is taken as it was when they were archived. Fewer
records in the log than in the history is what compaction does to a topic that asks for it; anything else is a
difference.
"""

from collections.abc import Sequence
from typing import Any

from tailrace.pipeline.access import access_from
from tailrace.pipeline.failure import PipelineFailed
from tailrace.pipeline.histories.checksum import ContentChecksum
from tailrace.pipeline.histories.findings import Finding
from tailrace.pipeline.histories.manifest import ArchivedRange, range_from
from tailrace.pipeline.histories.writing import by_day
from tailrace.pipeline.kafka.cluster import Cluster, TopicPartition
from tailrace.pipeline.kafka.damaged import Damaged, columns_of
from tailrace.pipeline.kafka.fetching import Range, fetch
from tailrace.pipeline.kafka.offsets import Offsets, end_offsets, start_offsets


def contents_again(cluster: Cluster, one: ArchivedRange, *, committed: bool = True) -> dict[str, tuple[int, int]]:
    """By date: how many records the log has now of a range, and the checksum of their content."""
    sums: dict[str, tuple[int, ContentChecksum]] = {}
    wanted = Range(partition=one.of, start=one.start, end=one.end)
    for chosen in fetch(cluster, wanted, committed=committed, on_damaged=_pass_over):
        for columns in columns_of(chosen, one.of, _pass_over, headers=True):
            inside = columns.within(one.start, one.end)
            for date, table, _ in by_day(inside, one.partition) if len(inside) else ():
                count, content = sums.get(date, (0, ContentChecksum()))
                content.add(table)
                sums[date] = (count + len(table), content)
    return {date: (count, content.value) for date, (count, content) in sums.items()}


def _pass_over(_: Damaged) -> None:
    """What the log cannot give back is missing there, and found to be."""


def fetch_again(told: dict[str, Any], given: dict[str, Any]) -> list[tuple[str, int, int]]:
    """For `run_tasks`: of each file of a range its path, and how many records of which content the log has there."""
    one = range_from(told)
    with access_from(given).cluster() as cluster:
        has = contents_again(cluster, one)
    return [(file.path, *has.get(file.date, (0, 0))) for file in one.files]


def edges_of(cluster: Cluster, topics: Sequence[str]) -> tuple[Offsets, Offsets, list[str]]:
    """Where the logs of these topics begin and end, and notes of those that are not there."""
    starts: Offsets = {}
    ends: Offsets = {}
    notes = []
    for topic in topics:
        try:
            partitions = cluster.partitions([topic])
        except PipelineFailed:
            notes.append(f"topic {topic} is not on the broker any more: its history was checked by itself")
            continue
        starts |= start_offsets(cluster, partitions)
        ends |= end_offsets(cluster, partitions, committed=False)
    return starts, ends, notes


def edge_notes(archived: Offsets, starts: Offsets, ends: Offsets) -> tuple[list[Finding], list[str]]:
    findings, notes = [], []
    for of, end in sorted(archived.items()):
        if of not in ends:
            continue
        if end > ends[of]:
            what = f"the log ends at {ends[of]}: it was truncated, or the topic was made anew"
            findings.append(_beyond(of, ends[of], end - 1, what))
        elif starts[of] > end:
            notes.append(f"{of}: offsets {end}…{starts[of] - 1} were removed before they were archived")
        elif end < ends[of]:
            notes.append(f"{of}: {ends[of] - end} offsets are not archived yet")
    return findings, notes


def _beyond(of: TopicPartition, first: int, last: int, what: str) -> Finding:
    return Finding(kind="ahead of the log", what=what, topic=of.topic, partition=of.partition, first=first, last=last)
