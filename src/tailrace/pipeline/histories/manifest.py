"""The manifest of a task: the offsets it archived, the files it wrote, and the offsets it left out and why."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from tailrace.pipeline.kafka.cluster import TopicPartition

GapReason = Literal["control", "aborted", "compaction", "quarantined", "unexplained"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Offsets, both ends included, that have no record for a reader."""

    first: int
    last: int
    reason: str  # one of `GapReason`

    @property
    def count(self) -> int:
        return self.last - self.first + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryFile:
    path: str  # relative to the history's folder
    size: int  # bytes
    crc: int  # CRC-32C of all its bytes
    content: int  # checksum of the records, independent of their physical layout
    count: int
    first: int  # offsets, both included
    last: int
    earliest_ms: int
    latest_ms: int
    date: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedRange:
    """The offsets of one partition from `start` up to, not including, `end`, all of them accounted for."""

    topic: str
    partition: int
    start: int
    end: int
    count: int  # records in the files
    gaps: tuple[Gap, ...]
    files: tuple[HistoryFile, ...]

    @property
    def of(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def is_whole(self) -> bool:
        """Whether records and gaps together account for every offset of the range."""
        return self.count + sum(gap.count for gap in self.gaps) == self.end - self.start

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def archived_range_from(told: Mapping[str, Any]) -> ArchivedRange:
    gaps = tuple(Gap(**gap) for gap in told["gaps"])
    files = tuple(HistoryFile(**file) for file in told["files"])
    return ArchivedRange(**{**told, "gaps": gaps, "files": files})


def gaps_between(present: Sequence[tuple[int, int]], start: int, end: int, reason: str) -> list[Gap]:
    """The gaps from `start` to `end` between sorted offset ranges; all ends are exclusive."""
    gaps, at = [], start
    for first, after in present:
        if first > at:
            gaps.append(Gap(first=at, last=first - 1, reason=reason))
        at = max(at, after)
    if at < end:
        gaps.append(Gap(first=at, last=end - 1, reason=reason))
    return gaps
