"""The records of `__cluster_metadata`, declared with their versions, so that brokers of two releases can share a log.

Names, topics, settings and where brokers are found live here and in no other file.
"""

from typing import Final, get_args

from tailrace.model.ids import Id
from tailrace.wire.messages.peers.registered_endpoint import RegisteredEndpoint
from tailrace.wire.messages.peers.registered_feature import RegisteredFeature
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
    directories: tuple[Id, ...] = wire()  # the disk of each: a voter is a broker and its disk


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


@record(type=8, versions="0-1", flexible="0+")
class BrokerRegistered:
    """Where a broker is found. Written when it joins and at each of its starts.

    Version 1 names the endpoint of each listener; version 0 has one, that of the Kafka listener."""

    broker_id: Int32 = wire()
    directory_id: Id = wire()
    incarnation_id: Id = wire()  # another one at each start
    host: str = wire(until=0, default="")
    kafka_port: Int32 = wire(until=0, default=0)  # 0: it has joined, and does not serve yet
    endpoints: tuple[RegisteredEndpoint, ...] = wire(since=1, default=())  # (): it has joined, and does not serve yet
    peer_host: str = wire()
    peer_port: Int32 = wire()
    rack: str | None = wire(nullable="0+")
    features: tuple[RegisteredFeature, ...] = wire(tag=0, default=())  # () in releases before 0.2.0


@record(type=9, versions="0-0", flexible="0+")
class BrokerFenced:
    """A broker was not heard of in time, or left; or it is back."""

    broker_id: Int32 = wire()
    fenced: bool = wire()


@record(type=10, versions="0-0", flexible="0+")
class PartitionLed:
    """Who leads a partition in an epoch, and which replicas keep up, as the leader itself reports."""

    topic_id: Id = wire()
    partition: Int32 = wire()
    leader: Int32 = wire()
    epoch: Int32 = wire()
    in_sync: tuple[Int32, ...] = wire()


@record(type=11, versions="0-0", flexible="0+")
class PartitionWidened:
    """More brokers hold a partition: these are all of them, the preferred leader first."""

    topic_id: Id = wire()
    partition: Int32 = wire()
    replicas: tuple[Int32, ...] = wire()


MetadataRecord = (
    TopicAdded
    | PartitionAdded
    | TopicRemoved
    | SettingChanged
    | FeatureRaised
    | ProducerIdsTaken
    | PartitionStartMoved
    | BrokerRegistered
    | BrokerFenced
    | PartitionLed
    | PartitionWidened
)

RECORD_KINDS: Final = record_types(*get_args(MetadataRecord))
