"""The result of an audit: what is wrong, where, and whether the history is complete.

A finding is an error, with file, partition and offsets where they are known. A note is worth knowing but is not an
error: for example, a topic that was deleted, or an archive that lags behind.
"""

from dataclasses import asdict, dataclass
from typing import Any, Literal

Kind = Literal[
    "missing file", "damaged file", "stray file", "missing commit", "damaged commit", "foreign commit", "gap",
    "duplicate", "producer sequence", "unaccounted range", "ahead of the log", "differs from the log",
]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    kind: Kind
    what: str  # a sentence
    file: str = ""
    topic: str = ""
    partition: int = -1
    first: int = -1  # offsets, both included
    last: int = -1

    def __str__(self) -> str:
        where = f"{self.topic}-{self.partition} " if self.topic else ""
        span = f"offsets {self.first}…{self.last} " if self.first >= 0 else ""
        return f"{self.kind}: {where}{span}{f'in {self.file} ' if self.file else ''}({self.what})"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionAudit:
    topic: str
    partition: int
    start: int
    end: int
    records: int
    explained: dict[str, int]  # number of offsets without a record, by the reason in the manifest
    compacted: int = 0  # records that the live log has compacted away since; 0 when it was not compared


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    history: str
    partitions: tuple[PartitionAudit, ...]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    files: int
    compared: int  # ranges whose records were fetched again from the live log

    @property
    def is_complete(self) -> bool:
        return not self.findings

    @property
    def records(self) -> int:
        return sum(one.records for one in self.partitions)

    def to_dict(self) -> dict[str, Any]:
        return {"verdict": "complete" if self.is_complete else "wrong", "records": self.records, **asdict(self)}
