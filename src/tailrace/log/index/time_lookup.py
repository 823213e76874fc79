"""ListOffsets by timestamp, exact to the record.

The time index gives a position before which every record is older. From there batch headers are read until one has a
highest timestamp that is not older than the one wanted; that batch is opened and its records are searched. A producer
can write a wrong highest timestamp into the header: then no record of the batch matches, and the search goes on with
the next batch. Batches that are expensive to open are opened in a worker process.

The records of a batch may be undecodable, or decompress to more than the broker opens. The broker stores what producers
send, and the checksum matches, so this is not damage: such a batch is answered from its header, as if its first record
had the highest timestamp.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from tailrace.log.index.segment_indexes import NO_TIMESTAMP, Indexes
from tailrace.log.segment import Segment
from tailrace.log.segment_walk import WalkedBatch
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


# From the log start offset, the most bytes to decompress and a batch: offset and timestamp of one of its records.
Pick = Callable[[int, int, Buffer], tuple[int, int] | None]


class Timed(NamedTuple):
    offset: int
    timestamp: int
    epoch: int


class Best(NamedTuple):
    """The batch with the highest timestamp found so far."""

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
        _, position = indexes.lookup(segment.base + indexes.times.lookup(timestamp))
        async for batch in segment.walk(position):
            header = _header(log, segment, batch)
            if header.last_offset >= limit:
                return None
            if header.max_timestamp >= timestamp and header.last_offset >= log.start and not header.is_control:
                record = await _search_batch(log, segment, batch, header, partial(first_not_older, timestamp))
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
    async for batch in best.segment.walk(best.position):
        return await _search_batch(log, best.segment, batch, _header(log, best.segment, batch), newest)
    return None


async def _highest(log: "Log", segment: Segment, indexes: Indexes, limit: int, best: Best | None) -> Best | None:
    """The first batch with the highest timestamp: searched from the last index entry on, then backwards while an
    earlier batch may have a higher one.

    Control batches hold no user records, so where one of them has the highest timestamp, earlier batches count.
    """
    entry = indexes.times.last_entry_below(limit - indexes.base)
    offset, stop = indexes.base + (entry[1] if entry else 0), limit
    while True:
        start, position = indexes.lookup(offset)
        best = await _highest_between(log, segment, indexes.max_timestamp, position, stop, limit, best)
        before = indexes.times.last_entry_below(start - indexes.base + 1)
        if position == 0 or start <= log.start or (before and best and best.timestamp > before[0]):
            return best
        offset, stop = start - 1, start


async def _highest_between(
    log: "Log", segment: Segment, top: int, position: int, stop: int, limit: int, best: Best | None
) -> Best | None:
    async for batch in segment.walk(position):
        header = _header(log, segment, batch)
        if header.last_offset >= limit or header.base_offset >= stop:
            break
        if header.last_offset < log.start or header.is_control:
            continue
        highest = header.max_timestamp
        if header.base_offset < log.start:  # the record that has it may lie below the log start
            record = await _search_batch(log, segment, batch, header, newest)
            highest = NO_TIMESTAMP if record is None else record.timestamp
        candidate = Best(highest, segment, batch.position)
        if best is None or highest > best.timestamp or (highest == best.timestamp and candidate.comes_before(best)):
            best = candidate
        if highest == top:
            break
    return best


def _header(log: "Log", segment: Segment, batch: WalkedBatch) -> BatchHeader:
    if batch.problem is not None or batch.header is None:
        raise _damaged(log, segment, batch, batch.problem or "unreadable")
    return batch.header


def _damaged(log: "Log", segment: Segment, batch: WalkedBatch, problem: str) -> StorageFailed:
    offset = batch.header.base_offset if batch.header is not None else segment.base
    log.found_damage(segment, batch.position, offset, problem)
    return StorageFailed(f"{log.folder} is {log.refusal}")


async def _search_batch(
    log: "Log", segment: Segment, batch: WalkedBatch, header: BatchHeader, pick: Pick
) -> Timed | None:
    by_header = Timed(max(header.base_offset, log.start), header.max_timestamp, header.leader_epoch)
    if header.attributes & LOG_APPEND_TIME_BIT:
        return by_header
    try:
        check_intact(batch.data)
    except (CorruptBatch, InvalidBatch) as fault:
        raise _damaged(log, segment, batch, str(fault)) from fault
    try:
        record = await _open_and_pick(log, batch.data, header, pick)
    except (BatchTooLarge, CorruptBatch, InvalidBatch):
        return by_header
    return None if record is None else Timed(record[0], record[1], header.leader_epoch)


async def _open_and_pick(log: "Log", data: memoryview, header: BatchHeader, pick: Pick) -> tuple[int, int] | None:
    large = header.compression != 0 and header.size > OPENED_HERE_MAX_COMPRESSED_BYTES
    if not large and header.records <= OPENED_HERE_MAX_RECORDS:
        try:
            return pick(log.start, max(OPENED_HERE_MAX_BYTES, header.size), data)
        except BatchTooLarge:
            pass  # it decompresses to more than is opened on the event loop
    return await log.ports.offload.process(pick, log.start, DECOMPRESSED_MAX_BYTES, bytes(data))


def first_not_older(timestamp: int, start: int, max_bytes: int, data: Buffer) -> tuple[int, int] | None:
    """Offset and timestamp of the first record at `start` or later that is not older than `timestamp`."""
    for record in walk_batch(data, max_bytes):
        if record.timestamp >= timestamp and record.offset >= start:
            return record.offset, record.timestamp
    return None


def newest(start: int, max_bytes: int, data: Buffer) -> tuple[int, int] | None:
    """Offset and timestamp of the first record with the highest timestamp among those at `start` or later."""
    best: tuple[int, int] | None = None
    for record in walk_batch(data, max_bytes):
        if record.offset >= start and (best is None or record.timestamp > best[1]):
            best = (record.offset, record.timestamp)
    return best
