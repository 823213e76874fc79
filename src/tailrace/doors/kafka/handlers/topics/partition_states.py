"""Leader, replicas and ISR of partitions, as in Metadata and DescribeTopicPartitions responses."""

from collections.abc import Iterator

from tailrace.broker.services import Topics
from tailrace.cluster.image import Topic
from tailrace.model.ids import NO_BROKER
from tailrace.wire.errors import Error
from tailrace.wire.messages.metadata import PartitionMetadata


def partition_states(topics: Topics, topic: Topic, first: int = 0) -> Iterator[PartitionMetadata]:
    """The partitions of a topic from `first` on."""
    for index, state in enumerate(topics.partition_states(topic, first), first):
        yield PartitionMetadata(
            error_code=Error.LEADER_NOT_AVAILABLE if state.leader == NO_BROKER else Error.NONE,
            partition=index,
            leader_id=state.leader,
            leader_epoch=state.epoch,
            replicas=state.replicas,
            isr=state.in_sync,
            offline_replicas=state.offline,
        )
