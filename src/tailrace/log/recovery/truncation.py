"""Truncating a log, as a follower does when its leader's log diverges from its own (Raft §5.3).

Producer state, epochs, voters and aborted transactions are rolled back with the bytes: producers and their open
transactions from the last snapshot below the new end and the batches after it, the others by truncation.

The truncation is durable before anything is written in place of the old tail. Otherwise a crash could leave parts of
the old tail below parts of the new one. Both may be whole batches with fitting offsets, where the new leader appended
the same number of records as the old one; the later epoch at the end would then vouch for all of them.

The file `truncated` marks a truncation below the recovery point. The points of all partitions are recorded in one file
that is written from time to time; with a point above its end a truncated log would look damaged after a crash. So the
mark is made durable in the log's own folder before the truncation, and removed once a later point is durably recorded.
An unreadable mark counts as a truncation to 0: everything is scanned.
"""

from typing import TYPE_CHECKING, Final

from tailrace.log.compaction.clean_state import CleanState
from tailrace.log.directory.state_file import Unreadable, read_state, write_state
from tailrace.log.file_names import (
    GAP_SUFFIX,
    PRODUCERS_SUFFIX,
    TRUNCATED_NAME,
    VOTERS_SUFFIX,
    file_name,
    offsets_named,
)
from tailrace.log.segment_walk import walk_cold
from tailrace.log.state import voters
from tailrace.log.state.aborted_index_files import load_aborted
from tailrace.log.state.producer_snapshots import producers_at
from tailrace.model.faults import OffsetOutOfRange
from tailrace.ports.disk import Disk, read_file, replace_file

if TYPE_CHECKING:
    from tailrace.log.log import Log

VERSION: Final = 1
BEING_TRUNCATED: Final = "being truncated"


def load_mark(disk: Disk, folder: str) -> int:
    try:
        (line,) = read_state(TRUNCATED_NAME, VERSION, read_file(disk, f"{folder}/{TRUNCATED_NAME}"))
        return int(line)
    except (Unreadable, ValueError):
        return 0


async def store_mark(disk: Disk, folder: str, offset: int) -> None:
    await replace_file(disk, f"{folder}/{TRUNCATED_NAME}", write_state(TRUNCATED_NAME, VERSION, [str(offset)]))


async def truncate_to(log: "Log", offset: int) -> None:
    if offset >= log.end:
        return
    if offset < log.start:
        raise OffsetOutOfRange(f"cannot truncate to offset {offset}, which is below the log start {log.start}")
    before, log.refusal = log.refusal, BEING_TRUNCATED
    try:
        number, end, position = await _find_new_end(log, offset)
        producers = await producers_at(log, end)
        await load_aborted(log, log.segments[number].base)
        await _mark(log, end)
        try:
            _truncate(log, number, end, position)
        except OSError as error:
            log.take_offline(f"truncation of {log.folder} to offset {end} failed half-way: {error}")
        log.producers = producers
        await log.flush()
    finally:
        if log.refusal == BEING_TRUNCATED:
            log.refusal = before
            log.refuse_if_damaged()  # a read may have found damage meanwhile


async def _find_new_end(log: "Log", offset: int) -> tuple[int, int, int]:
    """The number of the segment that becomes the last, the new log end, and the size of the segment then."""
    number = sum(segment.base <= offset for segment in log.segments) - 1
    segment = log.segments[number]
    indexes = await segment.load()
    assert indexes is not None, f"segment {segment.base} was removed during a truncation"
    await segment.load_first_timestamp()
    end, position = indexes.lookup(offset)
    async for batch in walk_cold(segment.file, position, segment.size, check=False):
        header = batch.header
        if batch.problem is not None or header is None or header.last_offset >= offset:
            break
        end, position = header.last_offset + 1, batch.position + header.size
    _, indexed = indexes.truncate_to(end)
    async for batch in walk_cold(segment.file, indexed, position, check=False):
        if batch.header is not None:
            indexes.add_batch(batch.header.base_offset, batch.position, batch.header.size, batch.header.max_timestamp)
    return number, end, position


async def _mark(log: "Log", end: int) -> None:
    if log.recovery_point is not None and end < log.recovery_point.offset:
        before = log.truncated_at, log.truncation_covered
        log.truncated_at = end if log.truncated_at is None else min(end, log.truncated_at)
        log.truncation_covered = False
        try:
            await store_mark(log.ports.disk, log.folder, log.truncated_at)
        except OSError:
            log.truncated_at, log.truncation_covered = (
                before  # a checkpoint would try to remove a mark that is not there
            )
            raise


def _truncate(log: "Log", number: int, end: int, position: int) -> None:
    disk, syncer = log.ports.disk, log.syncer
    for segment in reversed(log.segments[number + 1 :]):
        syncer.files.pop(segment.file, None)
        segment.remove_files()
        segment.remove_aborted_index()  # should a crash bring the segment back, it is scanned
    del log.segments[number + 1 :]
    last = log.segments[-1]
    last.file.truncate(position)
    last.truncated(position)
    names = disk.names(log.folder)
    stale = [file_name(offset, PRODUCERS_SUFFIX) for offset in offsets_named(names, PRODUCERS_SUFFIX) if offset > end]
    for suffix in (GAP_SUFFIX, VOTERS_SUFFIX):
        stale += [file_name(offset, suffix) for offset in offsets_named(names, suffix) if offset >= end]
    for name in stale:
        syncer.forget(f"{log.folder}/{name}")
        disk.remove(f"{log.folder}/{name}")
    log.end = end
    log.durable = min(log.durable, end)
    if log.clean.clean_to > end:
        log.clean = CleanState()
    log.point_saved = False
    log.recorded_offset = min(log.recorded_offset, end)
    log.epochs.truncate_to(end)
    log.aborted.truncate_to(end, last.base)
    voters.truncate_to(log, end)
    syncer.truncated(end)
    syncer.files[last.file] = None
    syncer.folders[log.folder] = None
