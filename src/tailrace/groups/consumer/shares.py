"""Which partitions a member has or shall have, as values: in order, each once, so that equal ones are equal."""

from collections.abc import Iterable, Mapping

from tailrace.groups.consumer.records import StoredPartitions
from tailrace.model.ids import Id, TopicPartition

Share = tuple[TopicPartition, ...]  # sorted, each once


def share(partitions: Iterable[TopicPartition]) -> Share:
    return tuple(sorted(dict.fromkeys(partitions)))


def by_topic(partitions: Iterable[TopicPartition]) -> Mapping[Id, tuple[int, ...]]:
    found: dict[Id, list[int]] = {}
    for one in partitions:
        found.setdefault(one.topic_id, []).append(one.partition)
    return {topic: tuple(numbers) for topic, numbers in found.items()}


def stored(partitions: Share) -> tuple[StoredPartitions, ...]:
    return tuple(StoredPartitions(topic_id=topic, partitions=some) for topic, some in by_topic(partitions).items())


def restored(partitions: Iterable[StoredPartitions]) -> Share:
    return share(TopicPartition(Id(topic.topic_id), one) for topic in partitions for one in topic.partitions)


def both(some: Share, others: Share) -> Share:
    """What is in both."""
    known = dict.fromkeys(others)
    return tuple(one for one in some if one in known)


def without(some: Share, others: Share) -> Share:
    """What is in one and not in the other."""
    known = dict.fromkeys(others)
    return tuple(one for one in some if one not in known)
