"""A follower's append: batches exactly as the leader has them, with their offsets and epochs.

Batches must be intact and continue the log: each begins where the one before it ended, and epochs do not fall. That
holds for a compacted leader, too: an empty batch stands where batches were removed. It may span offsets that the
follower has already, as batches of its own: then only the rest of it is appended. An empty log begins at the first
offset that the leader sends.
"""

from typing import TYPE_CHECKING

from tailrace.log.compaction.fillers import is_filler, rest_of_filler
from tailrace.log.state.voters import write_control
from tailrace.log.writing import write
from tailrace.model.faults import CorruptBatch, StorageFailed
from tailrace.records.header import CONTROL_BIT, BatchHeader, check_intact
from tailrace.records.opened import batches

if TYPE_CHECKING:
    from tailrace.log.log import Log


def append_as_is(log: "Log", data: memoryview, now_ms: int) -> int:
    count = 0
    for batch, header in batches(data):
        if log.refusal is not None:
            raise StorageFailed(f"{log.folder} is {log.refusal}")
        check_intact(batch)
        if not log.segments:
            log.start = log.end = log.durable = header.base_offset
        if header.base_offset < log.end <= header.last_offset and is_filler(header):
            batch, header = rest_of_filler(header, log.end)
        if header.base_offset != log.end or header.leader_epoch < log.epochs.last:
            raise CorruptBatch(
                f"a batch with offset {header.base_offset}, epoch {header.leader_epoch} cannot follow "
                f"offset {log.end - 1}, epoch {log.epochs.last}"
            )
        _append(log, batch, header, now_ms)
        count += 1
    return count


def _append(log: "Log", batch: memoryview, header: BatchHeader, now_ms: int) -> None:
    put = write_control if header.attributes & CONTROL_BIT else write
    put(log, batch, header.base_offset, header.last_offset, header.max_timestamp, now_ms)
    if header.leader_epoch != log.epochs.last:
        log.epochs.begin(header.leader_epoch, header.base_offset)
    if (aborted := log.producers.replay(header, batch, now_ms)) is not None:
        log.aborted.add(log.segments[-1].base, aborted)
