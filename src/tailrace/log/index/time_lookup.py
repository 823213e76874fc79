"""From a timestamp to a record, exactly.

The time index leads to a batch before which all is older; headers are read from there on until one says that it holds a
timestamp that is not; that one batch is opened. A producer's header may lie about its highest timestamp: then the
batch has nothing to offer and the search goes on. Batches that take long to open are opened in a worker process.
Records may be garbage, or unpack to more than we open: they are kept as they were sent, whole by their checksum, so
that is no damage. Such a batch answers with its header alone, as if its first record were the one.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from tailrace.log.index.segment_indexes import NO_TIMESTAMP, Indexes
from tailrace.log.recovery.segment_walk import Found
from tailrace.log.segment import Segment
from tailrace.model.faults import BatchTooLarge, CorruptBatch, InvalidBatch, StorageFailed
from tailrace.model.limits import DECOMPRESSED_MAX_BYTES, KiB, MiB
from tailrace.ports.disk import Buffer
from tailrace.records.header import LOG_APPEND_TIME_BIT, BatchHeader, check_intact
from tailrace.records.opened import walk_batch

if TYPE_CHECKING:
    from tailrace.log.log import Log

OPENED_HERE_MAX_RECORDS: Final = 1_000
OPENED_HERE_MAX_COMPRESSED_BYTES: Final = 16 * KiB
OPENED_HERE_MAX_BYTES: Final = MiB  # once decompressed


Pick = Callable[[int, int, Buffer], tuple[int, int] | None]  # the log's start, the most to decompress, the batch


class Timed(NamedTuple):
    offset: int
    timestamp: int
    epoch: int


class Best(NamedTuple):
    """The batch with the highest timestamp so far."""

    timestamp: int
    segment: Segment
    position: int

    def comes_before(self, other: "Best") -> bool:
        return self.segment is other.segment and self.position < other.position


async def offset_for_time(log: "Log", timestamp: int, limit: int) -> Timed | None:
    for segment in list(log.segments):
        if segment.base >= limit:
            return None
        if await segment.max_timestamp() < timestamp or (indexes := await segment.load()) is None:
            continue
        _, position = indexes.place(segment.base + indexes.times.before(timestamp))
        async for found in segment.walk(position):
            header = _header(log, segment, found)
            if header.last_offset >= limit:
                return None
            if header.max_timestamp >= timestamp and header.last_offset >= log.start and not header.is_control:
                record = await _open(log, segment, found, header, partial(first_not_older, timestamp))
                if record is not None:
                    return record
    return None


async def max_timestamp(log: "Log", limit: int) -> Timed | None:
    best: Best | None = None
    for segment in list(log.segments):
        if segment.base >= limit:
            break
        if best is not None and await segment.max_timestamp() <= best.timestamp:
            continue
        indexes = await segment.load()
        if indexes is not None:
            best = await _highest(log, segment, indexes, limit, best)
    if best is None:
        return None
    async for found in best.segment.walk(best.position):
        return await _open(log, best.segment, found, _header(log, best.segment, found), newest)
    return None


async def _highest(log: "Log", segment: Segment, indexes: Indexes, limit: int, best: Best | None) -> Best | None:
    """The first batch with the highest timestamp; from the last entry on, and back while one before may be higher.

    Markers of transactions hold no records: where they are the highest, those before them count.
    """
    entry = indexes.times.last_below(limit - indexes.base)
    offset, stop = indexes.base + (entry[1] if entry else 0), limit
    while True:
        start, position = indexes.place(offset)
        best = await _highest_between(log, segment, indexes.max_timestamp, position, stop, limit, best)
        before = indexes.times.last_below(start - indexes.base + 1)
        if position == 0 or start <= log.start or (before and best and best.timestamp > before[0]):
            return best
        offset, stop = start - 1, start


async def _highest_between(
    log: "Log", segment: Segment, top: int, position: int, stop: int, limit: int, best: Best | None
) -> Best | None:
    async for found in segment.walk(position):
        header = _header(log, segment, found)
        if header.last_offset >= limit or header.base_offset >= stop:
            break
        if header.last_offset < log.start or header.is_control:
            continue
        highest = header.max_timestamp
        if header.base_offset < log.start:  # the record with it may lie below the start
            record = await _open(log, segment, found, header, newest)
            highest = NO_TIMESTAMP if record is None else record.timestamp
        one = Best(highest, segment, found.position)
        if best is None or highest > best.timestamp or (highest == best.timestamp and one.comes_before(best)):
            best = one
        if highest == top:
            break
    return best


def _header(log: "Log", segment: Segment, found: Found) -> BatchHeader:
    if found.problem is not None or found.header is None:
        raise _damaged(log, segment, found, found.problem or "unreadable")
    return found.header


def _damaged(log: "Log", segment: Segment, found: Found, problem: str) -> StorageFailed:
    offset = found.header.base_offset if found.header is not None else segment.base
    log.found_damage(segment, found.position, offset, problem)
    return StorageFailed(f"{log.folder} is {log.refusal}")


async def _open(log: "Log", segment: Segment, found: Found, header: BatchHeader, pick: Pick) -> Timed | None:
    by_header = Timed(max(header.base_offset, log.start), header.max_timestamp, header.leader_epoch)
    if header.attributes & LOG_APPEND_TIME_BIT:
        return by_header
    try:
        check_intact(found.data)
    except (CorruptBatch, InvalidBatch) as fault:
        raise _damaged(log, segment, found, str(fault)) from fault
    try:
        record = await _picked(log, found.data, header, pick)
    except (BatchTooLarge, CorruptBatch, InvalidBatch):
        return by_header
    return None if record is None else Timed(record[0], record[1], header.leader_epoch)


async def _picked(log: "Log", data: memoryview, header: BatchHeader, pick: Pick) -> tuple[int, int] | None:
    large = header.compression != 0 and header.size > OPENED_HERE_MAX_COMPRESSED_BYTES
    if not large and header.records <= OPENED_HERE_MAX_RECORDS:
        try:
            return pick(log.start, max(OPENED_HERE_MAX_BYTES, header.size), data)
        except BatchTooLarge:
            pass  # few bytes can unpack to very many
    return await log.ports.offload.process(pick, log.start, DECOMPRESSED_MAX_BYTES, bytes(data))


def first_not_older(timestamp: int, start: int, max_bytes: int, data: Buffer) -> tuple[int, int] | None:
    """Offset and timestamp of the first record at `start` or later that is not older than `timestamp`."""
    for record in walk_batch(data, max_bytes):
        if record.timestamp >= timestamp and record.offset >= start:
            return record.offset, record.timestamp
    return None


def newest(start: int, max_bytes: int, data: Buffer) -> tuple[int, int] | None:
    """Offset and timestamp of the first of the records at `start` or later with the highest timestamp."""
    best: tuple[int, int] | None = None
    for record in walk_batch(data, max_bytes):
        if record.offset >= start and (best is None or record.timestamp > best[1]):
            best = (record.offset, record.timestamp)
    return best
