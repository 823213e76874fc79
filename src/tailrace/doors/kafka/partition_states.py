"""What clients are told about partitions: who leads them, and where their replicas are."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from tailrace.cluster.image import Topic
from tailrace.model.ids import no_epoch, nobody
from tailrace.wire.errors import Error

if TYPE_CHECKING:
    from tailrace.broker.node import Node


class PartitionState(NamedTuple):
    """The fields that Metadata and DescribeTopicPartitions share, by their names there."""

    error_code: int
    partition: int
    leader_id: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline_replicas: tuple[int, ...]


def partition_states(node: "Node", topic: Topic, first: int = 0) -> Iterator[PartitionState]:
    """The partitions of a topic from `first` on. One that is still being opened has no leader yet."""
    partitions = node.replicas.of_topic(topic.id)
    for index in range(first, len(topic.partitions)):
        replicas = topic.partitions[index].replicas
        if index >= len(partitions):
            yield PartitionState(Error.LEADER_NOT_AVAILABLE, index, nobody, no_epoch, replicas, replicas, ())
            continue
        partition = partitions[index]
        if partition.leads:
            yield PartitionState(0, index, node.broker_id, partition.epoch, replicas, replicas, ())
        else:
            offline = () if partition.log.failed is None else (node.broker_id,)
            error = Error.LEADER_NOT_AVAILABLE
            yield PartitionState(error, index, nobody, partition.epoch, replicas, replicas, offline)
