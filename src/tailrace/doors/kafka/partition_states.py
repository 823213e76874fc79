"""What clients are told about partitions: who leads them, and where their replicas are."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tailrace.cluster.image import Topic
from tailrace.model.ids import no_epoch, nobody
from tailrace.wire.errors import Error
from tailrace.wire.messages.metadata import PartitionMetadata

if TYPE_CHECKING:
    from tailrace.broker.node import Node


def partition_states(node: "Node", topic: Topic, first: int = 0) -> Iterator[PartitionMetadata]:
    """The partitions of a topic from `first` on, as Metadata shows them."""
    partitions, me = node.replicas.of_topic(topic.id), node.broker_id
    for index in range(first, len(topic.partitions)):
        replicas = topic.partitions[index].replicas
        partition = partitions[index] if index < len(partitions) else None  # None: it is still being opened
        if partition is not None and partition.leads:
            yield PartitionMetadata(
                partition=index, leader_id=me, leader_epoch=partition.epoch, replicas=replicas, isr=replicas
            )
            continue
        failed = partition is not None and partition.log.failed is not None
        yield PartitionMetadata(
            error_code=Error.LEADER_NOT_AVAILABLE,
            partition=index,
            leader_id=nobody,
            leader_epoch=no_epoch if partition is None else partition.epoch,
            replicas=replicas,
            isr=replicas,
            offline_replicas=(me,) if failed else (),
        )
