"""Maintenance of a log: checkpoints, retention, a log start that moves, closing and deletion.

One of these runs at a time (`Log` holds a lock), concurrently with appends and reads; so each captures the state it
needs before it first awaits. Segments are removed from the oldest on, and each removal is fsynced before the next: a
power cut in between must not leave a hole in the log. Before the last segment with records is removed, the name of the
next, empty one is durable: that name alone preserves the log end.
"""

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from tailrace.log.file_names import (
    ABORTED_SUFFIX,
    EPOCHS_NAME,
    PRODUCERS_SUFFIX,
    TRUNCATED_NAME,
    UNFINISHED_SUFFIX,
    file_name,
    offsets_named,
)
from tailrace.log.index.segment_indexes import NO_TIMESTAMP
from tailrace.log.recovery.recovered import RecoveryPoint
from tailrace.log.segment import Segment
from tailrace.log.state.producer_snapshots import producers_at
from tailrace.log.state.voters import remove_below_start
from tailrace.log.writing import roll
from tailrace.model.faults import OffsetOutOfRange
from tailrace.ports.disk import replace_file, write_new

if TYPE_CHECKING:
    from tailrace.log.log import Log

logger: Final = logging.getLogger(__name__)
CLOSED: Final = "closed"
DELETED: Final = "deleted"


def is_checkpointed(log: "Log") -> bool:
    if not log.can_checkpoint or not log.segments:
        return log.stops_clean or not log.can_checkpoint
    at_end = log.recovery_point == RecoveryPoint(offset=log.end, start=log.start)
    return log.stops_clean and log.point_saved and at_end and not log.truncation_covered and not _has_unsaved(log)


async def checkpoint(log: "Log") -> RecoveryPoint | None:
    """Damage that was found since the log was opened does not prevent it: bad bytes below the point stay damage."""
    if not log.can_checkpoint:
        return log.recovery_point
    if not log.segments:
        log.stops_clean = True
        return log.recovery_point
    end = log.end
    point = RecoveryPoint(offset=end, start=log.start)
    if log.point_saved and point == log.recovery_point and not log.truncation_covered and not _has_unsaved(log):
        log.stops_clean = True
        return point
    log.stops_clean, cost = False, log.unsaved_cost
    try:
        await _save(log, end)
        _remove_old_snapshots(log)
        _remove_truncation_mark(log)
    except OSError as error:
        previous = 0 if log.recovery_point is None else log.recovery_point.offset
        logger.error(
            "%s: checkpoint failed, the recovery point stays at offset %d and a crash costs a longer scan: %s",
            log.folder,
            previous,
            error,
        )
        return log.recovery_point
    log.recovery_point, log.point_saved, log.stops_clean = point, True, log.end == end
    log.unsaved_cost -= cost
    return point


async def _save(log: "Log", end: int) -> None:
    """Make durable everything below `end` and the state files that belong to it.

    All fsyncs run at the same time; then all new files are renamed, with one fsync of the folder.
    """
    disk, epochs_unsaved = log.ports.disk, log.epochs.unsaved
    fresh = {f"{log.folder}/{file_name(end, PRODUCERS_SUFFIX)}": log.producers.dump()}
    if epochs_unsaved:
        fresh[f"{log.folder}/{EPOCHS_NAME}"] = log.epochs.dump()
        log.epochs.unsaved = False
    aborted = log.aborted.unsaved()
    for base, index in aborted.items():
        fresh[f"{log.folder}/{file_name(base, ABORTED_SUFFIX)}"] = index.dump()
        index.unsaved = False
    try:
        writes = (write_new(disk, path, data) for path, data in fresh.items())
        ended = await asyncio.gather(log.flush(), _save_indexes(log), *writes, return_exceptions=True)
        for error in ended:
            if error is not None:
                raise error
        for path in fresh:
            disk.rename(path + UNFINISHED_SUFFIX, path)
        await disk.sync_dir(log.folder)
    except BaseException:
        log.epochs.unsaved = log.epochs.unsaved or epochs_unsaved
        for index in aborted.values():
            index.unsaved = True
        raise
    log.aborted.unload_sealed(log.segments[-1].base)


async def _save_indexes(log: "Log") -> None:
    for segment in list(log.segments):
        while _unsaved(segment):
            await segment.save_indexes()
            if segment is log.segments[-1]:
                break  # it keeps growing; the next checkpoint saves what came meanwhile
            if not _unsaved(segment):  # it may have grown, and been sealed, while its files were fsynced
                segment.unload_indexes()


def _has_unsaved(log: "Log") -> bool:
    return bool(log.aborted.unsaved()) or any(map(_unsaved, log.segments))


def _unsaved(segment: Segment) -> bool:
    return segment.indexes is not None and segment.indexes.unsaved


def _remove_old_snapshots(log: "Log") -> None:
    """Keep the producer snapshot that belongs to the recorded recovery point, and all later ones."""
    offsets = offsets_named(log.ports.disk.names(log.folder), PRODUCERS_SUFFIX)
    needed = max((offset for offset in offsets if offset <= log.recorded_offset), default=0)
    for offset in offsets:
        if offset < needed:
            log.ports.disk.remove(f"{log.folder}/{file_name(offset, PRODUCERS_SUFFIX)}")


def _remove_truncation_mark(log: "Log") -> None:
    if log.truncated_at is not None and log.truncation_covered:
        log.ports.disk.remove(f"{log.folder}/{TRUNCATED_NAME}")
        log.truncated_at, log.truncation_covered = None, False


async def retain(log: "Log", now_ms: int, high_watermark: int) -> int:
    log.producers.expire(now_ms)
    if log.refusal is not None or not log.segments:
        return 0
    count = await _count_expired(log, now_ms, high_watermark)
    if count and count == len(log.segments):
        roll(log, log.end)
        await log.flush()
    await _remove_oldest(log, count)
    return count


async def _count_expired(log: "Log", now_ms: int, high_watermark: int) -> int:
    """How many of the oldest segments exceed `retention.ms` or `retention.bytes`."""
    settings = log.settings
    surplus = log.size_bytes - settings.retention_bytes if settings.retention_bytes >= 0 else -1
    ends = [segment.base for segment in log.segments[1:]] + [log.end]
    count = 0
    for segment, end in zip(list(log.segments), ends, strict=True):
        active = count == len(ends) - 1
        if end > high_watermark or (active and segment.size == 0):
            break
        surplus -= segment.size
        if (surplus < 0 or active) and not await _is_too_old(segment, now_ms, settings.retention_ms):
            break
        count += 1
    if count == len(ends) and (len(log.segments) > count or log.end > ends[-1]):
        count -= 1  # the active segment has grown while the others were checked
    return count


async def _is_too_old(segment: Segment, now_ms: int, retention_ms: int) -> bool:
    if retention_ms < 0:
        return False
    newest = await segment.max_timestamp()
    if newest == NO_TIMESTAMP:  # no record has a timestamp: as in Kafka, the file's modification time counts
        newest = segment.file.modified_ms()
    return newest < now_ms - retention_ms


async def advance_start(log: "Log", offset: int) -> None:
    if offset > log.end:
        raise OffsetOutOfRange(f"offset {offset} is out of range: the log ends at {log.end}")
    if offset <= log.start:
        return
    log.start = offset
    log.epochs.advance_start(offset)
    await _remove_oldest(log, sum(segment.base <= offset for segment in log.segments[1:]))


async def truncate_fully_and_start_at(log: "Log", offset: int) -> None:
    if log.segments:
        roll(log, offset)  # first: when the disk has no room for it, the log stays unchanged
    log.start = log.end = offset
    log.durable = max(log.durable, offset)
    log.point_saved = False
    log.producers.transactions.clear()
    if log.segments:
        await log.flush()
        await _remove_oldest(log, len(log.segments) - 1)


async def _remove_oldest(log: "Log", count: int) -> None:
    try:
        for _ in range(count):
            await _keep_producers(log, log.segments[1].base)
            segment = log.segments.pop(0)
            log.start = max(log.start, log.segments[0].base)
            log.epochs.advance_start(log.start)
            log.aborted.remove_below(log.segments[0].base)
            log.syncer.files.pop(segment.file, None)
            segment.remove_files()
            await log.ports.disk.sync_dir(log.folder)
            segment.remove_aborted_index()
        remove_below_start(log)
    except OSError as error:
        logger.error(
            "%s: cannot remove the segments below offset %d; those left are in the log again after the next start: %s",
            log.folder,
            log.start,
            error,
        )


async def _keep_producers(log: "Log", base: int) -> None:
    """Write a producer snapshot at `base`: once everything below is removed, a recovery may have to begin there."""
    if base > log.recorded_offset:
        states = await producers_at(log, base)
        await replace_file(log.ports.disk, f"{log.folder}/{file_name(base, PRODUCERS_SUFFIX)}", states.dump())


async def close(log: "Log") -> RecoveryPoint | None:
    point = await checkpoint(log)
    log.refusal = log.refusal or CLOSED
    log.can_checkpoint = False
    for segment in log.segments:
        segment.file.close()
    return point


async def delete(log: "Log") -> None:
    log.refusal = DELETED
    log.can_checkpoint = False
    log.syncer.abandon(OSError(f"{log.folder} is deleted"))
    for segment in log.segments:
        segment.removed = True
        segment.file.close()
    log.segments.clear()
    disk = log.ports.disk
    if disk.exists(log.folder):
        await disk.remove_dir_cold(log.folder)
        await disk.sync_dir(log.folder.rpartition("/")[0])
