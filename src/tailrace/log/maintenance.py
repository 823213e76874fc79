"""What keeps a log small and quick to open: checkpoints, retention, a start that moves, the end of its life.

Each runs alone (`Log` holds a lock around them) beside appends and reads, so it notes what it needs in one go before it
waits. Files vanish from the oldest on, each removal synced before the next: a power cut in between must not leave a
hole. Before the last segment that holds anything goes, the name of the next is on disk: it alone knows where the log
ends.
"""

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from tailrace.log.file_names import (
    ABORTED_SUFFIX,
    CUT_NAME,
    EPOCHS_NAME,
    PRODUCERS_SUFFIX,
    UNFINISHED_SUFFIX,
    named,
    offsets_named,
)
from tailrace.log.index.segment_indexes import NO_TIMESTAMP
from tailrace.log.recovery.found import RecoveryPoint
from tailrace.log.segment import Segment
from tailrace.log.state.producers_at import producers_at
from tailrace.log.state.voters import forget_below_start
from tailrace.log.writing import roll
from tailrace.model.faults import OffsetOutOfRange
from tailrace.ports.disk import replace_file, write_new

if TYPE_CHECKING:
    from tailrace.log.log import Log

logger: Final = logging.getLogger(__name__)


def is_put_down(log: "Log") -> bool:
    if not log.known_whole or not log.segments:
        return log.settled or not log.known_whole
    at_end = log.point == RecoveryPoint(offset=log.end, start=log.start)
    return log.settled and log.saved and at_end and not log.cut_covered and not _has_unsaved(log)


async def checkpoint(log: "Log") -> RecoveryPoint | None:
    """Damage that was found since the log was opened is no hindrance: below the point it stays damage."""
    if not log.known_whole:
        return log.point
    if not log.segments:
        log.settled = True
        return log.point
    end = log.end
    point = RecoveryPoint(offset=end, start=log.start)
    if log.saved and point == log.point and not log.cut_covered and not _has_unsaved(log):
        log.settled = True
        return point
    log.settled = False
    try:
        await _put_down(log, end)
        _remove_old_snapshots(log)
        _remove_cut_mark(log)
    except OSError as error:
        logger.error("%s: no checkpoint could be made: %s", log.folder, error)
        return log.point
    log.point, log.saved, log.settled = point, True, log.end == end
    return point


async def _put_down(log: "Log", end: int) -> None:
    """Everything below `end`, and what belongs to it: all syncs at once, then the names, with one sync for them all."""
    disk, epochs_unsaved = log.ports.disk, log.epochs.unsaved
    fresh = {f"{log.folder}/{named(end, PRODUCERS_SUFFIX)}": log.producers.dump()}
    if epochs_unsaved:
        fresh[f"{log.folder}/{EPOCHS_NAME}"] = log.epochs.dump()
        log.epochs.unsaved = False
    aborted = log.aborted.unsaved()
    for base, index in aborted.items():
        fresh[f"{log.folder}/{named(base, ABORTED_SUFFIX)}"] = index.dump()
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
    log.aborted.forget_sealed(log.segments[-1].base)


async def _save_indexes(log: "Log") -> None:
    for segment in list(log.segments):
        while _unsaved(segment):
            await segment.save_indexes()
            if segment is log.segments[-1]:
                break  # it grows on; what came meanwhile is the next checkpoint's
            if not _unsaved(segment):  # it may have grown, and been sealed, while its files were synced
                segment.forget_indexes()


def _has_unsaved(log: "Log") -> bool:
    return bool(log.aborted.unsaved()) or any(map(_unsaved, log.segments))


def _unsaved(segment: Segment) -> bool:
    return segment.indexes is not None and segment.indexes.unsaved


def _remove_old_snapshots(log: "Log") -> None:
    """Keep what the point needs that is surely recorded."""
    offsets = offsets_named(log.ports.disk.names(log.folder), PRODUCERS_SUFFIX)
    needed = max((offset for offset in offsets if offset <= log.recorded_offset), default=0)
    for offset in offsets:
        if offset < needed:
            log.ports.disk.remove(f"{log.folder}/{named(offset, PRODUCERS_SUFFIX)}")


def _remove_cut_mark(log: "Log") -> None:
    if log.cut_at is not None and log.cut_covered:
        log.ports.disk.remove(f"{log.folder}/{CUT_NAME}")
        log.cut_at, log.cut_covered = None, False


async def retain(log: "Log", now_ms: int, high_watermark: int) -> int:
    log.producers.expire(now_ms)
    if log.refusal is not None or not log.segments:
        return 0
    count = await _expired(log, now_ms, high_watermark)
    if count and count == len(log.segments):
        roll(log, log.end)
        await log.flush()
    await _remove_first(log, count)
    return count


async def _expired(log: "Log", now_ms: int, high_watermark: int) -> int:
    """How many of the oldest segments retention no longer keeps."""
    settings = log.settings
    surplus = log.size_bytes - settings.retention_bytes if settings.retention_bytes >= 0 else -1
    ends = [segment.base for segment in log.segments[1:]] + [log.end]
    count = 0
    for segment, end in zip(list(log.segments), ends, strict=True):
        active = count == len(ends) - 1
        if end > high_watermark or (active and segment.size == 0):
            break
        surplus -= segment.size
        if (surplus < 0 or active) and not await _too_old(segment, now_ms, settings.retention_ms):
            break
        count += 1
    if count == len(ends) and (len(log.segments) > count or log.end > ends[-1]):
        count -= 1  # the active one has grown while we looked at the others
    return count


async def _too_old(segment: Segment, now_ms: int, retention_ms: int) -> bool:
    if retention_ms < 0:
        return False
    newest = await segment.max_timestamp()
    if newest == NO_TIMESTAMP:  # producers have said nothing: as with Kafka, the file does
        newest = segment.file.modified_ms()
    return newest < now_ms - retention_ms


async def advance_start(log: "Log", offset: int) -> None:
    if offset > log.end:
        raise OffsetOutOfRange(f"offset {offset} lies past the end {log.end}")
    if offset <= log.start:
        return
    log.start = offset
    log.epochs.advance_start(offset)
    await _remove_first(log, sum(segment.base <= offset for segment in log.segments[1:]))


async def begin_anew(log: "Log", offset: int) -> None:
    """Nothing of the log counts any more, and it goes on at `offset`, which lies past its end."""
    if log.segments:
        roll(log, offset)  # first: where the disk has no room for it the log stays as it was
    log.start = log.end = offset
    log.durable = max(log.durable, offset)
    log.saved = False
    log.producers.transactions.forget()
    if log.segments:
        await log.flush()
        await _remove_first(log, len(log.segments) - 1)


async def _remove_first(log: "Log", count: int) -> None:
    try:
        for _ in range(count):
            await _leave_producers(log, log.segments[1].base)
            segment = log.segments.pop(0)
            log.start = max(log.start, log.segments[0].base)
            log.epochs.advance_start(log.start)
            log.aborted.forget_below(log.segments[0].base)
            log.syncer.files.pop(segment.file, None)
            segment.remove_files()
            await log.ports.disk.sync_dir(log.folder)
            segment.remove_aborted()
        forget_below_start(log)
    except OSError as error:
        logger.error("%s: a segment could not be removed, it will come back at the next start: %s", log.folder, error)


async def _leave_producers(log: "Log", base: int) -> None:
    """Once all below `base` is gone a recovery may begin there: leave it what producers had sent by then."""
    if base > log.recorded_offset:
        states = await producers_at(log, base)
        await replace_file(log.ports.disk, f"{log.folder}/{named(base, PRODUCERS_SUFFIX)}", states.dump())


async def close(log: "Log") -> RecoveryPoint | None:
    point = await checkpoint(log)
    log.refusal = log.refusal or "closed"
    log.known_whole = False
    for segment in log.segments:
        segment.file.close()
    return point


async def delete(log: "Log") -> None:
    log.refusal = "deleted"
    log.known_whole = False
    log.syncer.abandon(OSError(f"{log.folder} is deleted"))
    for segment in log.segments:
        segment.removed = True
        segment.file.close()
    log.segments.clear()
    disk = log.ports.disk
    if disk.exists(log.folder):
        await disk.remove_dir_cold(log.folder)
        await disk.sync_dir(log.folder.rpartition("/")[0])
