"""What clients are told about partitions: who leads them, and where their replicas are."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tailrace.cluster.image import Topic
from tailrace.model.ids import NOBODY
from tailrace.wire.errors import Error
from tailrace.wire.messages.metadata import PartitionMetadata

if TYPE_CHECKING:
    from tailrace.broker.node import Node


def partition_states(node: "Node", topic: Topic, first: int = 0) -> Iterator[PartitionMetadata]:
    """The partitions of a topic from `first` on, as Metadata shows them."""
    for index, state in enumerate(node.leaders.of(topic, first), first):
        yield PartitionMetadata(
            error_code=Error.LEADER_NOT_AVAILABLE if state.leader == NOBODY else Error.NONE,
            partition=index,
            leader_id=state.leader,
            leader_epoch=state.epoch,
            replicas=state.replicas,
            isr=state.in_sync,
            offline_replicas=state.offline,
        )
