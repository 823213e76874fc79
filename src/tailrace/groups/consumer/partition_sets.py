"""Sets of partitions as values: sorted tuples without duplicates, so that equal sets compare equal."""

from collections.abc import Iterable, Mapping

from tailrace.groups.consumer.records import StoredPartitions
from tailrace.model.ids import Id, TopicPartition

PartitionSet = tuple[TopicPartition, ...]  # sorted, without duplicates


def partition_set(partitions: Iterable[TopicPartition]) -> PartitionSet:
    return tuple(sorted(dict.fromkeys(partitions)))


def by_topic(partitions: Iterable[TopicPartition]) -> Mapping[Id, tuple[int, ...]]:
    found: dict[Id, list[int]] = {}
    for one in partitions:
        found.setdefault(one.topic_id, []).append(one.partition)
    return {topic: tuple(numbers) for topic, numbers in found.items()}


def to_stored(partitions: PartitionSet) -> tuple[StoredPartitions, ...]:
    return tuple(StoredPartitions(topic_id=topic, partitions=some) for topic, some in by_topic(partitions).items())


def from_stored(partitions: Iterable[StoredPartitions]) -> PartitionSet:
    return partition_set(TopicPartition(Id(topic.topic_id), one) for topic in partitions for one in topic.partitions)


def intersection(some: PartitionSet, others: PartitionSet) -> PartitionSet:
    known = dict.fromkeys(others)
    return tuple(one for one in some if one in known)


def difference(some: PartitionSet, others: PartitionSet) -> PartitionSet:
    """Those of `some` that are not in `others`."""
    known = dict.fromkeys(others)
    return tuple(one for one in some if one not in known)
