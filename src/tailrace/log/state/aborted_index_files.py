"""Reading the indexes of aborted transactions, and making those again that cannot be read.

An abort marker does not say where its transaction began: that takes what producers had open before the segment, and
all of its batches.
"""

from typing import TYPE_CHECKING

from tailrace.log.directory.state_file import Unreadable
from tailrace.log.file_names import ABORTED_SUFFIX
from tailrace.log.segment import Segment
from tailrace.log.state.aborted_index import Aborted, AbortedIndex
from tailrace.log.state.producers_at import producers_at
from tailrace.model.faults import CorruptBatch

if TYPE_CHECKING:
    from tailrace.log.log import Log


async def aborted_between(log: "Log", offset: int, upto: int) -> list[Aborted]:
    """The aborted transactions that began below `upto` and ended at `offset` or later."""
    while isinstance(found := log.aborted.find(offset, upto), int):
        await load_aborted(log, found)
    return found


async def load_aborted(log: "Log", base: int) -> None:
    """Have the index of the segment that begins at `base` in memory, if it has one."""
    if not log.aborted.is_on_disk(base):
        return
    segment = next((one for one in log.segments if one.base == base), None)
    assert segment is not None, "an index is forgotten with its segment"
    try:
        index = AbortedIndex.load(await segment.read_beside(ABORTED_SUFFIX))
    except Unreadable:
        index = await _made_again(log, segment)
    if log.aborted.is_on_disk(base):  # it may have been cut, or gone, meanwhile
        log.aborted.know(base, index)


async def _made_again(log: "Log", segment: Segment) -> AbortedIndex:
    """From the batches, beside appends."""
    states, index, position = await producers_at(log, segment.base), AbortedIndex(), 0
    now_ms = log.ports.clock.wall_ms()
    while position < segment.size and not segment.removed:
        async for found in segment.walk(position):
            if found.problem is not None or found.header is None:
                return index  # whoever reads that far is told of the damage
            try:
                aborted = states.replay(found.header, found.data, now_ms)
            except CorruptBatch:
                return index
            if aborted is not None:
                index.add(aborted)
            position = found.position + found.header.size
    return index
