"""Producer state as of an earlier log end: from the last snapshot below it, and the batches after that.

A snapshot is a file `….producers`, named by the offset below which it is complete.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tailrace.log.directory.state_file import Unreadable
from tailrace.log.file_names import PRODUCERS_SUFFIX, file_name, offsets_named
from tailrace.log.segment_walk import walk_cold
from tailrace.log.state.producers import ProducerStates
from tailrace.model.faults import CorruptBatch
from tailrace.ports.disk import Disk, read_file

if TYPE_CHECKING:
    from tailrace.log.log import Log


def last_snapshot(
    disk: Disk, folder: str, names: Iterable[str], upto: int, expiration_ms: int
) -> tuple[int, ProducerStates] | None:
    """Offset and content of the last readable snapshot at `upto` or below."""
    for offset in reversed(offsets_named(names, PRODUCERS_SUFFIX)):
        if offset <= upto:
            try:
                data = read_file(disk, f"{folder}/{file_name(offset, PRODUCERS_SUFFIX)}")
                return offset, ProducerStates.load(data, expiration_ms)
            except Unreadable:
                continue
    return None


async def producers_at(log: "Log", end: int) -> ProducerStates:
    """Producer state as it was when the log ended at `end`."""
    now_ms, disk = log.ports.clock.wall_ms(), log.ports.disk
    snapshot_end, states = log.segments[0].base, ProducerStates(log.producers.expiration_ms)
    snapshot = last_snapshot(disk, log.folder, disk.names(log.folder), end, states.expiration_ms)
    if snapshot is not None:
        snapshot_end, states = snapshot
    for segment, after in zip(list(log.segments), [*log.segments[1:], None], strict=True):
        if segment.base >= end or (after is not None and after.base <= snapshot_end):
            continue
        async for batch in walk_cold(segment.file, 0, segment.size, check=False):
            header = batch.header
            if header is None or batch.problem is not None or header.base_offset >= end:
                break
            if header.base_offset >= snapshot_end:
                try:
                    states.replay(header, batch.data, now_ms)
                except CorruptBatch:  # an unreadable marker: the damage is reported by reads and by `verify`
                    break
    return states
