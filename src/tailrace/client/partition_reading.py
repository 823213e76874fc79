"""Read one partition from an offset on, once: for callers that keep no consumer between their requests.

    found = await read_partition(cluster, PartitionName("orders", 0), 17, max_records=100)

An offset may lie where there is no record to be seen: among control records, in an aborted transaction, or in what
compaction removed. The first record after it is found, and `next_offset` is where to go on.
"""

from typing import Any, Final, NamedTuple

from tailrace.client.cluster import Cluster
from tailrace.client.consumer import Received
from tailrace.client.faults import ClientError
from tailrace.client.visible_batches import VisibleBatches
from tailrace.client.visible_reading import read_visible
from tailrace.model.faults import Fault
from tailrace.model.ids import PartitionName
from tailrace.model.limits import KiB, MiB
from tailrace.records.opened import walk_batch

PIECE_MIN_BYTES: Final = 4 * KiB
RECORD_BYTES: Final = 256  # a guess, for the first piece
PIECE_GROWTH: Final = 4
CONTINUED_WITHIN_S: Final = 1.0  # what was found does not wait longer for what comes after it


class PartitionRead(NamedTuple):
    records: list[Received]
    next_offset: int


async def read_partition(
    cluster: Cluster,
    partition: PartitionName,
    offset: int,
    *,
    max_records: int,
    max_bytes: int = MiB,
    wait_s: float = 0.0,
    committed: bool = True,
    within_s: float | None = None,
) -> PartitionRead:
    """The records from an offset on, none if there are none within `wait_s`. Refused if the offset does not exist.

    They are read in pieces, each larger than the one before: how many bytes they take is not known, and to read as much
    as might be wanted takes longer than all the rest."""
    until = cluster.driver.now() + wait_s
    piece = min(max_bytes, max(PIECE_MIN_BYTES, RECORD_BYTES * max_records))
    while True:
        left_s = max(until - cluster.driver.now(), 0.0)
        visible = await _piece(cluster, partition, offset, piece, wait_s=left_s, committed=committed, within_s=within_s)
        if visible is not None:
            found = _records(partition, offset, visible, max_records)
            if found.records:
                break
            offset, piece = found.next_offset, min(max_bytes, PIECE_GROWTH * piece)
        elif left_s <= 0:
            return PartitionRead([], offset)
    records, offset = found
    while len(records) < max_records and offset < visible.limit and len(visible.data) < max_bytes:
        max_bytes -= len(visible.data)
        piece = min(max_bytes, PIECE_GROWTH * piece)
        try:
            visible = await _piece(cluster, partition, offset, piece, committed=committed, within_s=CONTINUED_WITHIN_S)
            if visible is None or len(visible.data) > max_bytes:
                break
            more = _records(partition, offset, visible, max_records - len(records))
        except ClientError:  # what came before is returned first
            break
        records, offset = records + more.records, more.next_offset
    return PartitionRead(records, offset)


async def _piece(
    cluster: Cluster, partition: PartitionName, offset: int, max_bytes: int, **how: Any
) -> VisibleBatches | None:
    """The batches at an offset; None if there are none."""
    try:
        visible = await read_visible(cluster, partition, offset, max_bytes, **how)
    except Fault as fault:
        raise _unreadable(partition, offset, fault) from None
    return visible if visible is not None and visible.end > offset else None


def _records(partition: PartitionName, offset: int, visible: VisibleBatches, most: int) -> PartitionRead:
    found: list[Received] = []
    for at, header in visible.batches:
        try:
            for one in walk_batch(visible.data[at : at + header.size]):
                if len(found) == most:
                    return PartitionRead(found, found[-1].offset + 1)
                if one.offset >= offset:
                    found.append(Received(partition, one.offset, one.timestamp, one.key, one.value, one.headers))
        except Fault as fault:
            if found:  # what came before it is returned first
                return PartitionRead(found, found[-1].offset + 1)
            raise _unreadable(partition, offset, fault) from None
    return PartitionRead(found, visible.end)


def _unreadable(partition: PartitionName, offset: int, fault: Fault) -> ClientError:
    return ClientError(f"cannot read {partition.topic}-{partition.partition} from offset {offset} on: {fault}")
