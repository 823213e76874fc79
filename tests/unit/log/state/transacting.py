"""Write transactional batches and markers to a log, and list its aborted transactions."""

from tailrace.log.log import Log
from tailrace.records.build import build_batch
from tailrace.records.control import marker_batch
from tailrace.records.header import read_header
from tailrace.records.record import NewRecord
from tests.unit.log.logs import NOW, put


def send(log: Log, producer: int, *, epoch: int = 0, sequence: int | None = None, value: bytes = b"v") -> int:
    """Append one transactional record; returns its offset."""
    known = log.producers.get(producer)
    if sequence is None:
        sequence = known.last_sequence + 1 if known is not None and known.epoch == epoch else 0
    batch = build_batch(
        [NewRecord(value=value, timestamp=NOW)],
        producer_id=producer,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=True,
    )
    return put(log, memoryview(batch)).base_offset


def mark(log: Log, producer: int, *, commits: bool = False, epoch: int = 0, coordinator: int = 0) -> int:
    batch = memoryview(
        marker_batch(
            committed=commits,
            producer_id=producer,
            producer_epoch=epoch,
            coordinator_epoch=coordinator,
            timestamp=NOW,
        )
    )
    return log.append(batch, read_header(batch), 1, NOW, internal=True).base_offset


async def aborted(log: Log, offset: int = 0, upto: int | None = None) -> list[tuple[int, int, int]]:
    found = await log.aborted_between_cold(offset, log.end if upto is None else upto)
    return [one[:3] for one in found]
