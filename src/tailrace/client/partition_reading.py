"""Read one partition from an offset on, once: for callers that keep no consumer between their requests.

    found = await read_partition(cluster, PartitionName("orders", 0), 17, max_records=100)

An offset may lie where there is no record to be seen: among control records, in an aborted transaction, or in what
compaction removed. The first record after it is found, and `next_offset` is where to go on.
"""

from typing import NamedTuple

from tailrace.client.cluster import Cluster
from tailrace.client.consumer import Received
from tailrace.client.faults import ClientError
from tailrace.client.visible_batches import VisibleBatches
from tailrace.client.visible_reading import read_visible
from tailrace.model.faults import Fault
from tailrace.model.ids import PartitionName
from tailrace.model.limits import MiB
from tailrace.records.opened import walk_batch


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
    """The records from an offset on, none if there are none within `wait_s`. Refused if the offset does not exist."""
    until = cluster.driver.now() + wait_s
    while True:
        left_s = max(until - cluster.driver.now(), 0.0)
        try:
            visible = await read_visible(
                cluster, partition, offset, max_bytes, wait_s=left_s, committed=committed, within_s=within_s
            )
        except Fault as fault:
            raise _unreadable(partition, offset, fault) from None
        if visible is not None and visible.end > offset:
            found = _records(partition, offset, visible, max_records)
            if found.records:
                return found
            offset = found.next_offset
        elif left_s <= 0:
            return PartitionRead([], offset)


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
