"""A follower's append: batches exactly as the leader has them, with their offsets and epochs.

Batches must be intact and continue the log: offsets and epochs do not fall. A leader whose log was compacted sends
batches that skip offsets; such a gap is written to a file before the batch behind it (`gaps`). An empty log begins at
the first offset that the leader sends.
"""

from typing import TYPE_CHECKING

from tailrace.log.state.gaps import write_gap
from tailrace.log.state.voters import write_control
from tailrace.log.writing import write, write_fault
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
        if header.base_offset < log.end or header.leader_epoch < log.epochs.last:
            raise CorruptBatch(
                f"a batch with offset {header.base_offset}, epoch {header.leader_epoch} cannot follow "
                f"offset {log.end - 1}, epoch {log.epochs.last}"
            )
        _append(log, batch, header, now_ms)
        count += 1
    return count


def _append(log: "Log", batch: memoryview, header: BatchHeader, now_ms: int) -> None:
    skips = header.base_offset > log.end
    if skips:
        _write_gap(log, header.base_offset)
    put = write_control if header.attributes & CONTROL_BIT else write
    put(log, batch, header.base_offset, header.last_offset, header.max_timestamp, now_ms)
    if skips:
        log.segments[-1].has_gaps = True
    if header.leader_epoch != log.epochs.last:
        log.epochs.begin(header.leader_epoch, header.base_offset)
    if (aborted := log.producers.replay(header, batch, now_ms)) is not None:
        log.aborted.add(log.segments[-1].base, aborted)


def _write_gap(log: "Log", next_offset: int) -> None:
    try:
        file = write_gap(log.ports.disk, log.folder, log.end, next_offset)
    except OSError as error:
        raise write_fault(log.folder, error) from error
    log.syncer.files[file] = None
    log.syncer.folders[log.folder] = None
