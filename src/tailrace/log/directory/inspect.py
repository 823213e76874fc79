"""Read a partition's folder without a broker, for `tailrace log dump` and `tailrace log verify`.

Nothing is changed, and only the segments are read: indexes can be wrong, the batches are the truth. `verify` checks
every batch against all rules of a log: whole, matching checksum, offsets and epochs that do not fall, records that can
be decoded. After a problem it continues with the next segment, so that it shows how far the damage reaches.
"""

from collections.abc import Iterator
from typing import NamedTuple

from tailrace.log.file_names import SEGMENT_SUFFIX, file_name, offsets_named
from tailrace.log.segment_walk import walk
from tailrace.log.state.open_transactions import Transactions
from tailrace.model.faults import BatchTooLarge, CorruptBatch, InvalidBatch
from tailrace.model.frozen import frozen
from tailrace.ports.disk import Disk
from tailrace.records.control import Marker, read_control
from tailrace.records.header import BatchHeader
from tailrace.records.opened import open_batch
from tailrace.records.record import Record


class Stored(NamedTuple):
    """A batch as it is on disk; or, with a `problem`, bytes that are not a whole batch."""

    file: str
    position: int
    header: BatchHeader | None
    data: memoryview  # the whole batch; empty when there is a problem
    problem: str | None

    def records(self) -> list[Record]:
        return open_batch(self.data)

    def marker(self) -> Marker | None:
        """The transaction marker in this batch; None when the batch is another kind, or unreadable."""
        if self.problem is not None:
            return None
        try:
            control = read_control(self.data)
        except (CorruptBatch, InvalidBatch):
            return None
        return control if isinstance(control, Marker) else None


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
    markers: int  # of transactions; included in `records`
    open: int  # transactions without a marker so far
    bytes: int  # of good batches
    start: int
    end: int
    problems: tuple[Problem, ...]  # in log order; a segment is left at its first bytes that are not a batch


def stored_batches(disk: Disk, folder: str) -> Iterator[Stored]:
    """All batches of a partition's folder, in log order, checksums compared; a segment is left at its first problem."""
    for base in offsets_named(disk.names(folder), SEGMENT_SUFFIX):
        path = f"{folder}/{file_name(base, SEGMENT_SUFFIX)}"
        file = disk.open(path)
        try:
            for batch in walk(file, 0, file.size(), check=True):
                yield Stored(path, batch.position, batch.header, batch.data, batch.problem)
        finally:
            file.close()


def verify(disk: Disk, folder: str) -> Report:
    bases = offsets_named(disk.names(folder), SEGMENT_SUFFIX)
    batches = records = markers = size = 0
    transactions = Transactions()
    end, epoch = bases[0] if bases else 0, -1
    problems: list[Problem] = []
    for batch in stored_batches(disk, folder):
        reason = _find_problem(batch, end, epoch)
        if reason is not None:
            problems.append(Problem(file=batch.file, position=batch.position, reason=reason))
        if batch.header is None or batch.problem is not None:
            continue
        end, epoch = max(end, batch.header.last_offset + 1), max(epoch, batch.header.leader_epoch)
        if reason is None:
            batches += 1
            records += batch.header.records
            size += batch.header.size
            markers += _track_transaction(transactions, batch)
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


def _track_transaction(transactions: Transactions, batch: Stored) -> bool:
    """Open or end the transaction that a good batch belongs to; returns whether the batch is a marker."""
    header = batch.header
    if header is None or not header.is_transactional:
        return False
    if batch.marker() is None:
        transactions.begin(header.producer_id, header.base_offset)
        return False
    transactions.end(header.producer_id, header.base_offset)
    return True


def _find_problem(batch: Stored, expected: int, epoch: int) -> str | None:
    header = batch.header
    if batch.problem is not None or header is None:
        return batch.problem or "unreadable"
    if header.base_offset < expected:
        return f"base offset {header.base_offset} after offset {expected - 1}"
    if header.leader_epoch < epoch:
        return f"leader epoch {header.leader_epoch} after {epoch}"
    try:
        batch.records()
    except (BatchTooLarge, CorruptBatch, InvalidBatch) as fault:
        return f"records cannot be decoded: {fault}"
    return None
