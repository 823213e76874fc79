"""What producers had sent, and had open, when a log ended earlier: from the last snapshot, and the batches since."""

from typing import TYPE_CHECKING

from tailrace.log.recovery.segment_walk import walk_cold
from tailrace.log.state.producer_snapshots import last_snapshot
from tailrace.log.state.producers import ProducerStates
from tailrace.model.faults import CorruptBatch

if TYPE_CHECKING:
    from tailrace.log.log import Log


async def producers_at(log: "Log", end: int) -> ProducerStates:
    now_ms, disk = log.ports.clock.wall_ms(), log.ports.disk
    have, states = log.segments[0].base, ProducerStates(log.producers.expiration_ms)
    snapshot = last_snapshot(disk, log.folder, disk.names(log.folder), end, states.expiration_ms)
    if snapshot is not None:
        have, states = snapshot
    for segment, after in zip(list(log.segments), [*log.segments[1:], None], strict=True):
        if segment.base >= end or (after is not None and after.base <= have):
            continue
        async for found in walk_cold(segment.file, 0, segment.size, check=False):
            header = found.header
            if header is None or found.problem is not None or header.base_offset >= end:
                break
            if header.base_offset >= have:
                try:
                    states.replay(header, found.data, now_ms)
                except CorruptBatch:  # a marker that cannot be read; reads and `verify` will find the damage
                    break
    return states
