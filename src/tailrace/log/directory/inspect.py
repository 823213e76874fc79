"""Look into a partition's folder without a broker: what `tailrace log dump` and `tailrace log verify` show.

Nothing is changed and nothing is loaded but the segments themselves: indexes may be wrong, batches are the truth.
`verify` holds every batch against all rules that a log keeps: whole, right checksum, offsets and epochs that do not
fall, records that can be opened. It goes on to the next segment after a problem, so that people see how far it reaches.
"""

from collections.abc import Iterator
from typing import NamedTuple

from tailrace.log.file_names import SEGMENT_SUFFIX, named, offsets_named
from tailrace.log.recovery.segment_walk import walk
from tailrace.log.state.open_transactions import Transactions
from tailrace.model.faults import BatchTooLarge, CorruptBatch, InvalidBatch
from tailrace.model.frozen import frozen
from tailrace.ports.disk import Disk
from tailrace.records.control import Marker, read_control
from tailrace.records.header import BatchHeader
from tailrace.records.opened import open_batch
from tailrace.records.record import Record


class Stored(NamedTuple):
    """One batch as it lies on the disk; or, with a `problem`, the bytes that are none."""

    file: str
    position: int
    header: BatchHeader | None
    data: memoryview  # the whole batch; empty when there is a problem
    problem: str | None

    def records(self) -> list[Record]:
        return open_batch(self.data)

    def marker(self) -> Marker | None:
        """What it says of its producer's transaction, if it ends one; a batch that cannot be read says nothing."""
        if self.problem is not None:
            return None
        try:
            said = read_control(self.data)
        except (CorruptBatch, InvalidBatch):
            return None
        return said if isinstance(said, Marker) else None


@frozen
class Problem:
    file: str
    position: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file} at byte {self.position}: {self.reason}"


@frozen
class Report:
    segments: int
    batches: int  # good ones
    records: int
    markers: int  # ends of transactions, which are records, too
    open: int  # transactions that have no marker yet
    bytes: int  # of good batches
    start: int
    end: int
    problems: tuple[Problem, ...]  # in the order of the log; at most one a segment for bytes that are no batch


def stored_batches(disk: Disk, folder: str) -> Iterator[Stored]:
    """All batches of a partition's folder in order, checksums compared; a segment ends at its first problem."""
    for base in offsets_named(disk.names(folder), SEGMENT_SUFFIX):
        path = f"{folder}/{named(base, SEGMENT_SUFFIX)}"
        file = disk.open(path)
        try:
            for found in walk(file, 0, file.size(), check=True):
                yield Stored(path, found.position, found.header, found.data, found.problem)
        finally:
            file.close()


def verify(disk: Disk, folder: str) -> Report:
    bases = offsets_named(disk.names(folder), SEGMENT_SUFFIX)
    batches = records = markers = size = 0
    transactions = Transactions()
    end, epoch = bases[0] if bases else 0, -1
    problems: list[Problem] = []
    for batch in stored_batches(disk, folder):
        reason = _wrong(batch, end, epoch)
        if reason is not None:
            problems.append(Problem(file=batch.file, position=batch.position, reason=reason))
        if batch.header is None or batch.problem is not None:
            continue
        end, epoch = max(end, batch.header.last_offset + 1), max(epoch, batch.header.leader_epoch)
        if reason is None:
            batches += 1
            records += batch.header.records
            size += batch.header.size
            markers += _fold(transactions, batch)
    return Report(
        segments=len(bases),
        batches=batches,
        records=records,
        markers=markers,
        open=len(transactions.open),
        bytes=size,
        start=bases[0] if bases else 0,
        end=end,
        problems=tuple(problems),
    )


def _fold(transactions: Transactions, batch: Stored) -> bool:
    """Take part in a good batch of a transaction; whether it is a marker."""
    header = batch.header
    if header is None or not header.is_transactional:
        return False
    if batch.marker() is None:
        transactions.begin(header.producer_id, header.base_offset)
        return False
    transactions.end(header.producer_id, header.base_offset)
    return True


def _wrong(batch: Stored, expected: int, epoch: int) -> str | None:
    header = batch.header
    if batch.problem is not None or header is None:
        return batch.problem or "unreadable"
    if header.base_offset < expected:
        return f"offset {header.base_offset} after {expected - 1}"
    if header.leader_epoch < epoch:
        return f"leader epoch {header.leader_epoch} after {epoch}"
    try:
        batch.records()
    except (BatchTooLarge, CorruptBatch, InvalidBatch) as fault:
        return f"its records cannot be read: {fault}"
    return None
