"""Loading the indexes of aborted transactions, and rebuilding those whose file is unreadable.

When a log is opened, the indexes of segments below the recovery point stay in their files until they are needed. The
index of the segment that holds the point is loaded and truncated to it; everything above the point is scanned, so those
indexes start empty.

A rebuild reads more than its segment: an abort marker does not say where its transaction began. It takes the open
transactions at the segment's start (`producer_snapshots`), and then all batches of the segment.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tailrace.log.directory.state_file import Unreadable
from tailrace.log.file_names import ABORTED_SUFFIX, offsets_named
from tailrace.log.segment import Segment
from tailrace.log.state.aborted_index import Aborted, AbortedIndex, AbortedIndexes
from tailrace.log.state.producer_snapshots import producers_at
from tailrace.model.faults import CorruptBatch
from tailrace.ports.disk import Disk, read_file

if TYPE_CHECKING:
    from tailrace.log.log import Log


def aborted_at_open(
    disk: Disk, names: Sequence[str], segments: Sequence[Segment], number: int, target: int
) -> AbortedIndexes:
    """The indexes of a log that is being opened, up to `target`, the recovery point, in segment `number`."""
    indexes, bases = AbortedIndexes(), dict.fromkeys(offsets_named(names, ABORTED_SUFFIX))
    for at, segment in enumerate(segments):
        if segment.base not in bases:
            continue
        if at < number:
            indexes.put(segment.base, None)
        elif at == number:
            indexes.put(segment.base, _parse_up_to(target, read_file(disk, segment.path_of(ABORTED_SUFFIX))))
        else:
            indexes.put(segment.base, AbortedIndex())
    return indexes


def _parse_up_to(end: int, data: bytes) -> AbortedIndex | None:
    """The index in a file, truncated to `end`; None when it is unreadable."""
    try:
        index = AbortedIndex.load(data)
    except Unreadable:
        return None
    index.truncate_to(end)
    return index


async def aborted_between(log: "Log", offset: int, upto: int) -> list[Aborted]:
    """The aborted transactions that began below `upto` and have their marker at `offset` or later."""
    while isinstance(found := log.aborted.find(offset, upto), int):
        await load_aborted(log, found)
    return found


async def load_aborted(log: "Log", base: int) -> None:
    """Load the index of the segment that begins at `base`, if it has one that is not in memory."""
    if not log.aborted.must_load(base):
        return
    segment = next((segment for segment in log.segments if segment.base == base), None)
    assert segment is not None, f"aborted index at {base} outlived its segment"
    try:
        index = AbortedIndex.load(await segment.read_index_file(ABORTED_SUFFIX))
    except Unreadable:
        index = await _rebuild(log, segment)
    if log.aborted.must_load(base) and not segment.removed:  # the log may have been truncated or compacted meanwhile
        log.aborted.put(base, index)


async def _rebuild(log: "Log", segment: Segment) -> AbortedIndex:
    """Rebuild an index from the batches while appends go on."""
    states, index, position = await producers_at(log, segment.base), AbortedIndex(), 0
    now_ms = log.ports.clock.wall_ms()
    while position < segment.size and not segment.removed:
        async for batch in segment.walk(position):
            if batch.problem is not None or batch.header is None:
                return index  # reads that come this far report the damage
            try:
                aborted = states.replay(batch.header, batch.data, now_ms)
            except CorruptBatch:
                return index
            if aborted is not None:
                index.add(aborted)
            position = batch.position + batch.header.size
    return index
