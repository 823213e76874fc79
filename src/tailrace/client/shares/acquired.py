"""Which records of a ShareFetch response this member has acquired.

The batches are whole: they may hold records that others have. Acquired offsets without a record (control batches, what
compaction removed) are gaps, and must be acknowledged, too. Acquired records of a batch that cannot be read are to be
released: the broker stops delivering them at its limit.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from tailrace.client.faults import ClientError
from tailrace.model.faults import Fault
from tailrace.ports.disk import Buffer
from tailrace.records.opened import batches, open_batch
from tailrace.records.record import Record
from tailrace.wire.messages.share_fetch import PartitionShareFetched

ACQUIRED_MAX: Final = 1_000_000  # offsets of one partition in one response


class Acquired(NamedTuple):
    records: list[tuple[Record, int]]  # each with its delivery count, by offset
    gaps: list[int]
    unreadable: list[int]


def acquired(answer: PartitionShareFetched) -> Acquired:
    """ClientError if the acquired ranges cannot be true."""
    counts: dict[int, int] = {}
    for some in answer.acquired_records:
        if not 0 <= some.last_offset - some.first_offset < ACQUIRED_MAX - len(counts):
            raise ClientError(f"the broker says that offsets {some.first_offset} to {some.last_offset} were acquired")
        counts |= dict.fromkeys(range(some.first_offset, some.last_offset + 1), some.delivery_count)
    found = Acquired([], [], [])
    for first, last, records in _readable(answer.records):
        if records is None:
            found.unreadable.extend(offset for offset in range(first, last + 1) if counts.pop(offset, None) is not None)
            continue
        for record in records:
            count = counts.pop(record.offset, None)
            if count is not None:
                found.records.append((record, count))
    found.gaps.extend(counts)
    return found


def _readable(data: Buffer) -> Iterator[tuple[int, int, list[Record] | None]]:
    """The first and last offset of each batch of records, and the records; None if they cannot be read."""
    try:
        for batch, header in batches(data):
            if header.is_control:
                continue
            try:
                records = open_batch(batch)
            except Fault:
                yield header.base_offset, header.last_offset, None
            else:
                yield header.base_offset, header.last_offset, records
    except Fault as fault:
        raise ClientError(f"the broker sends no record batches: {fault}") from None
