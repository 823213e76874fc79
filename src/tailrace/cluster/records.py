"""The records of `__cluster_metadata`, declared with their versions, so that brokers of two releases can share a log.

Names, topics and settings live here and in no other file.
"""

from typing import Final

from tailrace.model.ids import Id
from tailrace.wire.schema import Int8, Int16, Int32, Int64, record, wire
from tailrace.wire.stored import record_types


@record(type=1, versions="0-0", flexible="0+")
class TopicAdded:
    """A topic begins; its partitions follow."""

    name: str = wire()
    topic_id: Id = wire()


@record(type=2, versions="0-0", flexible="0+")
class PartitionAdded:
    """A partition begins, and these brokers hold it, the preferred leader first."""

    topic_id: Id = wire()
    partition: Int32 = wire()
    replicas: tuple[Int32, ...] = wire()


@record(type=3, versions="0-0", flexible="0+")
class TopicRemoved:
    """A topic is gone with all its partitions and settings; its id never comes back."""

    topic_id: Id = wire()


@record(type=4, versions="0-0", flexible="0+")
class SettingChanged:
    """A topic or broker is told something; None: it is told nothing any more."""

    resource: Int8 = wire()
    owner: str = wire()  # a topic's name, a broker's id, or "" for all brokers
    name: str = wire()
    value: str | None = wire(nullable="0+")


@record(type=5, versions="0-0", flexible="0+")
class FeatureRaised:
    """All brokers understand this level of a feature from now on."""

    name: str = wire()
    level: Int16 = wire()


@record(type=6, versions="0-0", flexible="0+")
class ProducerIdsTaken:
    """A broker has taken all producer ids below `next_id` that nobody had."""

    broker: Int32 = wire()
    next_id: Int64 = wire()


@record(type=7, versions="0-0", flexible="0+")
class PartitionStartMoved:
    """Records below `start` are deleted, for every leader to come."""

    topic_id: Id = wire()
    partition: Int32 = wire()
    start: Int64 = wire()


MetadataRecord = (
    TopicAdded | PartitionAdded | TopicRemoved | SettingChanged | FeatureRaised | ProducerIdsTaken | PartitionStartMoved
)

record_kinds: Final = record_types(
    TopicAdded, PartitionAdded, TopicRemoved, SettingChanged, FeatureRaised, ProducerIdsTaken, PartitionStartMoved
)
