"""Which records of a ShareFetch response this member has acquired.

The batches are whole: they may hold records that others have. Acquired offsets without a record (control batches, what
compaction removed) are gaps, and must be acknowledged, too. Acquired records of a batch that cannot be read are to be
released: the broker stops delivering them at its limit.

A member that takes a few records at a time gets the same batch again and again, so those that it has opened last are
kept.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Final, NamedTuple

from tailrace.client.faults import ClientError
from tailrace.model.faults import Fault
from tailrace.ports.disk import Buffer
from tailrace.records.header import BatchHeader
from tailrace.records.opened import batches, open_batch
from tailrace.records.record import Record
from tailrace.wire.messages.share_fetch import PartitionShareFetched

ACQUIRED_MAX: Final = 1_000_000  # offsets of one partition in one response
OPENED_MAX: Final = 4  # batches that are kept

Opened = dict[int, Record]  # by offset


class Acquired(NamedTuple):
    records: list[tuple[Record, int]]  # each with its delivery count, by offset
    gaps: list[int]
    unreadable: list[int]


class AcquiredRecords:
    """Of the responses for one partition."""

    def __init__(self) -> None:
        self._opened: dict[tuple[int, int, int], Opened] = {}  # by first offset, size and checksum; the oldest first

    def of(self, answer: PartitionShareFetched) -> Acquired:
        """ClientError if the acquired ranges cannot be true."""
        counts = _counts(answer)
        offsets = sorted(counts)
        found = Acquired([], [], [])
        for batch, header in _batches(answer.records):
            within = offsets[bisect_left(offsets, header.base_offset) : bisect_right(offsets, header.last_offset)]
            mine = [one for one in within if one in counts]
            if header.is_control or not mine:
                continue
            try:
                opened = self._open(batch, header, keeps=len(mine) < header.records)
            except Fault:
                found.unreadable.extend(mine)
                for offset in mine:
                    del counts[offset]
                continue
            for offset in mine:
                if offset in opened:
                    found.records.append((opened[offset], counts.pop(offset)))
        found.gaps.extend(counts)
        return found

    def _open(self, batch: memoryview, header: BatchHeader, *, keeps: bool) -> Opened:
        key = (header.base_offset, header.size, header.crc)
        opened = self._opened.pop(key, None)
        if opened is None:
            opened = {one.offset: one for one in open_batch(batch)}
        if keeps:
            self._opened[key] = opened
            if len(self._opened) > OPENED_MAX:
                del self._opened[next(iter(self._opened))]
        return opened


def _counts(answer: PartitionShareFetched) -> dict[int, int]:
    """The delivery count of each acquired offset."""
    counts: dict[int, int] = {}
    for some in answer.acquired_records:
        if not 0 <= some.last_offset - some.first_offset < ACQUIRED_MAX - len(counts):
            raise ClientError(f"acquired offsets {some.first_offset} to {some.last_offset} are no valid range")
        counts |= dict.fromkeys(range(some.first_offset, some.last_offset + 1), some.delivery_count)
    return counts


def _batches(data: Buffer) -> Iterator[tuple[memoryview, BatchHeader]]:
    try:
        yield from batches(data)
    except Fault as fault:
        raise ClientError(f"the broker's response has no valid record batches: {fault}") from None
