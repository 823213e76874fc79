"""Write a batch at the log end: into the active segment, or into a new one when that is full or too old.

A write that the disk refuses (a full disk, for example) leaves nothing behind, and the next one may succeed: a partial
write is truncated at once, and the file is fsynced again before anything written later counts as durable. A refusal is
logged when it begins and when it ends, not for each append.
"""

import errno
import logging
from typing import TYPE_CHECKING, Final, NoReturn

from tailrace.log.index.sparse import RELATIVE_OFFSET_MAX
from tailrace.log.segment import Segment
from tailrace.model.faults import StorageFailed

if TYPE_CHECKING:
    from tailrace.log.log import Log

logger: Final = logging.getLogger(__name__)

BATCH_SCAN_BYTES: Final = 4096  # in a scan after a crash, a batch costs as much as so many bytes, beside its own


class ScanCost:
    """What was appended to all logs that share this counter, by what a scan of it after a crash would cost."""

    __slots__ = ("bytes",)

    def __init__(self) -> None:
        self.bytes = 0


def write(log: "Log", batch: memoryview, base: int, last: int, timestamp: int, now_ms: int) -> None:
    """Write a batch with offsets `base` to `last`; update the indexes and the log end."""
    size, settings = len(batch), log.settings
    active = log.segments[-1] if log.segments else None
    moment = timestamp if timestamp >= 0 else now_ms  # records may have no timestamp; their segment still ages
    if active is None or (
        active.size
        and (
            active.size + size > settings.segment_bytes
            or (moment - active.first_timestamp > log.roll_ms and _has_age(active, now_ms))
            or last - active.base > RELATIVE_OFFSET_MAX
            or (active.indexes is not None and active.indexes.size_bytes >= settings.segment_index_bytes)
        )
    ):
        active = roll(log, log.end)
    position = active.size
    try:
        active.file.write(batch, position)
    except OSError as error:
        _undo(log, active, error)
    if log.writes_refused:
        log.writes_refused = False
        logger.info("%s: the disk accepts writes again, appends resume", log.folder)
    if position == 0:
        active.first_timestamp = moment
    assert active.indexes is not None
    active.indexes.add_batch(base, position, size, timestamp)
    active.size = position + size
    log.unsaved_cost += size + BATCH_SCAN_BYTES
    log.scan_cost.bytes += size + BATCH_SCAN_BYTES
    log.end = last + 1
    log.note_written(active.file, last - base + 1, now_ms)


def _has_age(active: Segment, now_ms: int) -> bool:
    """False for a segment found at start-up whose first batch has no timestamp: its age is counted from now."""
    if active.first_timestamp >= 0:
        return True
    active.first_timestamp = now_ms
    return False


def roll(log: "Log", base: int) -> Segment:
    """Begin a new active segment at `base`: the log end, or a later offset where the log continues."""
    disk = log.ports.disk
    try:
        if not log.segments:
            disk.make_dir(log.folder)
            log.syncer.folders[log.folder.rpartition("/")[0]] = None
        segment = Segment(disk, log.folder, base, log.settings.index_interval_bytes)
    except OSError as error:
        raise refuse(log, log.folder, error) from error
    segment.begin_indexes()
    log.syncer.folders[log.folder] = None
    log.segments.append(segment)
    log.draw_roll_age()
    return segment


def _undo(log: "Log", active: Segment, error: OSError) -> NoReturn:
    """Truncate what a failed write may have left."""
    log.syncer.files[active.file] = None
    try:
        active.file.truncate(active.size)
    except OSError as worse:
        path = active.file.path
        log.take_offline(f"cannot truncate {path} to {active.size} bytes after a failed write: {worse}")
    raise refuse(log, active.file.path, error) from error


def refuse(log: "Log", path: str, error: OSError) -> StorageFailed:
    """The fault for an append that the disk refuses; the first of consecutive refusals is logged."""
    fault = write_fault(path, error)
    if not log.writes_refused:
        log.writes_refused = True
        logger.error("appends refused until the disk accepts writes again: %s", fault)
    return fault


def write_fault(path: str, error: OSError) -> StorageFailed:
    """The fault for a failed write, which names a full disk as such."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return StorageFailed(f"cannot write {path}: {'the disk is full' if full else error}")
