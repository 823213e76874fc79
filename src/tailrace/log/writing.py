"""Putting a batch at the log's end: into the active segment, or a new one when that is full or old.

A write that the disk refuses leaves nothing behind, and the next one may work. What it may have left is taken back at
once, and that is synced, too, before anything written later counts. Refusals are reported when they begin and when they
are over, not each time.
"""

import logging
from typing import TYPE_CHECKING, Final, NoReturn

from tailrace.log.disk_faults import refused
from tailrace.log.index.sparse import RELATIVE_OFFSET_MAX
from tailrace.log.segment import Segment
from tailrace.model.faults import StorageFailed

if TYPE_CHECKING:
    from tailrace.log.log import Log

logger: Final = logging.getLogger(__name__)


def write(log: "Log", batch: memoryview, base: int, last: int, timestamp: int, now_ms: int) -> None:
    """Write a batch and know about it."""
    size, settings = len(batch), log.settings
    active = log.segments[-1] if log.segments else None
    moment = timestamp if timestamp >= 0 else now_ms  # records may have no time; their segment grows old all the same
    if active is None or (
        active.size
        and (
            active.size + size > settings.segment_bytes
            or (moment - active.first_timestamp > settings.segment_ms and _is_old(active, now_ms))
            or last - active.base > RELATIVE_OFFSET_MAX
        )
    ):
        active = roll(log, log.end)
    position = active.size
    try:
        active.file.write(batch, position)
    except OSError as error:
        _undo(log, active, error)
    if log.refusing:
        log.refusing = False
        logger.info("%s: appending goes on", log.folder)
    if position == 0:
        active.first_timestamp = moment
    assert active.indexes is not None
    active.indexes.note(base, position, size, timestamp)
    active.size = position + size
    log.end = last + 1
    log.written(active.file, last - base + 1, now_ms)


def _is_old(active: Segment, now_ms: int) -> bool:
    """Of a segment found at the start whose first batch has no time, nobody knows: it counts from now."""
    if active.first_timestamp >= 0:
        return True
    active.first_timestamp = now_ms
    return False


def roll(log: "Log", base: int) -> Segment:
    """Begin a new active segment at `base`: the log's end, or where it goes on."""
    disk = log.ports.disk
    try:
        if not log.segments:
            disk.make_dir(log.folder)
            log.syncer.folders[log.folder.rpartition("/")[0]] = None
        segment = Segment(disk, log.folder, base, log.settings.index_interval_bytes)
    except OSError as error:
        raise not_taken(log, log.folder, error) from error
    segment.begin_indexes()
    log.syncer.folders[log.folder] = None
    log.segments.append(segment)
    return segment


def _undo(log: "Log", active: Segment, error: OSError) -> NoReturn:
    """A write has failed: take back what it may have left."""
    log.syncer.files[active.file] = None
    try:
        active.file.truncate(active.size)
    except OSError as worse:
        log.close_for_good(f"{active.file.path} could not be cut back after a failed write: {worse}")
    raise not_taken(log, active.file.path, error) from error


def not_taken(log: "Log", path: str, error: OSError) -> StorageFailed:
    """The fault for a write that the disk does not take."""
    fault = refused(path, error)
    if not log.refusing:
        log.refusing = True
        logger.error("no more can be appended for now: %s", fault)
    return fault
