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

from tailrace.log.indexes import Indexes, no_timestamp
from tailrace.log.segment import Segment
from tailrace.log.walk import Found
from tailrace.model.faults import BatchTooLarge, CorruptBatch, InvalidBatch, StorageFailed
from tailrace.model.limits import KiB, MiB, decompressed_max_bytes
from tailrace.ports.disk import Buffer
from tailrace.records.header import BatchHeader, check_intact, log_append_time_bit
from tailrace.records.opened import walk_batch

if TYPE_CHECKING:
    from tailrace.log.log import Log

opened_here_max_records: Final = 1_000
opened_here_max_compressed_bytes: Final = 16 * KiB
opened_here_max_bytes: Final = MiB  # once decompressed


Pick = Callable[[int, int, Buffer], tuple[int, int] | None]  # the log's start, the most to decompress, the batch


class Timed(NamedTuple):
    offset: int
    timestamp: int
    epoch: int


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
    best: tuple[int, Segment, int] | None = None  # timestamp, segment, position to look from
    for segment in list(log.segments):
        if segment.base >= limit:
            break
        indexes = await segment.load()
        if indexes is None or (best is not None and indexes.max_timestamp <= best[0]):
            continue
        async for found in segment.walk(_last_high(indexes, limit)):
            header = _header(log, segment, found)
            if header.last_offset >= limit:
                break
            if header.last_offset < log.start:
                continue
            highest = header.max_timestamp
            if header.base_offset < log.start:  # the record with it may lie below the start
                record = await _open(log, segment, found, header, newest)
                highest = no_timestamp if record is None else record.timestamp
            if best is None or highest > best[0]:
                best = (highest, segment, found.position)
            if highest == indexes.max_timestamp:
                break
    if best is None:
        return None
    _, segment, position = best
    async for found in segment.walk(position):
        return await _open(log, segment, found, _header(log, segment, found), newest)
    return None


def _last_high(indexes: Indexes, limit: int) -> int:
    """A position before the last batch below `limit` that had a higher timestamp than all before."""
    entry = indexes.times.last_below(limit - indexes.base)
    return indexes.place(indexes.base + entry[1])[1] if entry else 0


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
    if header.attributes & log_append_time_bit:
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
    large = header.compression != 0 and header.size > opened_here_max_compressed_bytes
    if not large and header.records <= opened_here_max_records:
        try:
            return pick(log.start, max(opened_here_max_bytes, header.size), data)
        except BatchTooLarge:
            pass  # few bytes can unpack to very many
    return await log.ports.offload.process(pick, log.start, decompressed_max_bytes, bytes(data))


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
