"""Cutting a log's tail off, as a follower does whose leader knows better (Raft §5.3).

Producer state, epochs, voters and aborted transactions are rolled back with the bytes: producers, and what they had
open, from the last snapshot below the cut and the batches after it, the others by cutting. The cut is marked before it
is made (`cut_mark`), and on the disk before anything is written over it: otherwise a crash could leave a part of what
was cut below a part of what replaced it. Both are whole batches that fit, where a leader took again what the one before
it had taken, and the later epoch would vouch for the whole.
"""

from typing import TYPE_CHECKING, Final

from tailrace.log.file_names import GAP_SUFFIX, PRODUCERS_SUFFIX, VOTERS_SUFFIX, named, offsets_named
from tailrace.log.recovery.segment_walk import walk_cold
from tailrace.log.recovery.truncation_mark import store_cut
from tailrace.log.state.aborted_index_files import load_aborted
from tailrace.log.state.producers_at import producers_at
from tailrace.log.state.voters import forget_from
from tailrace.model.faults import OffsetOutOfRange

if TYPE_CHECKING:
    from tailrace.log.log import Log

BEING_TRUNCATED: Final = "being truncated"


async def truncate_to(log: "Log", offset: int) -> None:
    if offset >= log.end:
        return
    if offset < log.start:
        raise OffsetOutOfRange(f"offset {offset} lies below the start {log.start}")
    before, log.refusal = log.refusal, BEING_TRUNCATED
    try:
        number, end, position = await _find_cut(log, offset)
        producers = await producers_at(log, end)
        await load_aborted(log, log.segments[number].base)
        await _mark(log, end)
        try:
            _cut(log, number, end, position)
        except OSError as error:
            log.close_for_good(f"{log.folder} could not be truncated: {error}")
        log.producers = producers
        await log.flush()
    finally:
        if log.refusal == BEING_TRUNCATED:
            log.refusal = before


async def _find_cut(log: "Log", offset: int) -> tuple[int, int, int]:
    """The segment that will be the last, the offset at which it will end, and its size then."""
    number = sum(segment.base <= offset for segment in log.segments) - 1
    segment = log.segments[number]
    indexes = await segment.load()
    assert indexes is not None, "only one chore runs at a time"
    await segment.know_first_timestamp()
    end, position = indexes.place(offset)
    async for found in walk_cold(segment.file, position, segment.size, check=False):
        header = found.header
        if found.problem is not None or header is None or header.last_offset >= offset:
            break
        end, position = header.last_offset + 1, found.position + header.size
    _, noted = indexes.rewind(end)
    async for found in walk_cold(segment.file, noted, position, check=False):
        if found.header is not None:
            indexes.note(found.header.base_offset, found.position, found.header.size, found.header.max_timestamp)
    return number, end, position


async def _mark(log: "Log", end: int) -> None:
    if log.point is not None and end < log.point.offset:
        log.cut_at = end if log.cut_at is None else min(end, log.cut_at)
        log.cut_covered = False
        await store_cut(log.ports.disk, log.folder, log.cut_at)


def _cut(log: "Log", number: int, end: int, position: int) -> None:
    disk, syncer = log.ports.disk, log.syncer
    for segment in reversed(log.segments[number + 1 :]):
        syncer.files.pop(segment.file, None)
        segment.remove_files()
        segment.remove_aborted()  # what comes back is scanned
    del log.segments[number + 1 :]
    last = log.segments[-1]
    last.file.truncate(position)
    last.cut(position)
    names = disk.names(log.folder)
    stale = [named(offset, PRODUCERS_SUFFIX) for offset in offsets_named(names, PRODUCERS_SUFFIX) if offset > end]
    for suffix in (GAP_SUFFIX, VOTERS_SUFFIX):
        stale += [named(offset, suffix) for offset in offsets_named(names, suffix) if offset >= end]
    for name in stale:
        syncer.forget(f"{log.folder}/{name}")
        disk.remove(f"{log.folder}/{name}")
    log.end = end
    log.durable = min(log.durable, end)
    log.saved = False
    log.recorded_offset = min(log.recorded_offset, end)
    log.epochs.truncate_to(end)
    log.aborted.cut(end, last.base)
    forget_from(log, end)
    syncer.truncated(end)
    syncer.files[last.file] = None
    syncer.folders[log.folder] = None
