"""ConsumerProtocol: the subscriptions and assignments that consumers of the classic protocol embed in JoinGroup and
SyncGroup, in Kafka's format.

To the broker these are opaque bytes of the clients, with two exceptions. The topics of a subscription tell which
committed offsets are in use. And in a group with members of both protocols (KIP-848), the coordinator reads what
such a member subscribes to and owns, and writes its assignment. Each value begins with its version, two bytes; a newer
version has the fields of version 3 first, and is read as version 3.
"""

import struct
from collections.abc import Iterable
from typing import Final

from tailrace.groups.consumer.partition_sets import PartitionSet, by_topic, partition_set
from tailrace.groups.topics import Topics
from tailrace.model.faults import InconsistentProtocol
from tailrace.model.ids import TopicPartition
from tailrace.wire.compile import decode, encode
from tailrace.wire.primitives import WireError
from tailrace.wire.schema import Int32, record, wire
from tailrace.wire.schema import struct as part

CONSUMER_PROTOCOL: Final = "consumer"  # the protocol type of consumers
VERSION_LAYOUT: Final = struct.Struct(">h")
NEWEST_VERSION: Final = 3


@part
class ConsumerProtocolPartitions:
    """Partitions of one topic."""

    topic: str
    partitions: tuple[Int32, ...]


@record(type=0, versions="0-3", flexible="none")
class ConsumerProtocolSubscription:
    """What a member subscribes to and owns."""

    topics: tuple[str, ...]
    user_data: bytes | None = wire(nullable="0+", default=None)
    owned_partitions: tuple[ConsumerProtocolPartitions, ...] = wire(since=1, default=(), ignorable=True)
    generation_id: Int32 = wire(since=2, default=-1, ignorable=True)
    rack_id: str | None = wire(since=3, nullable="3+", default=None, ignorable=True)


@record(type=0, versions="0-0", flexible="none")
class SubscriptionTopics:
    """The first field of a subscription, which is the same in all versions."""

    topics: tuple[str, ...]


@record(type=0, versions="0-3", flexible="none")
class ConsumerProtocolAssignment:
    """What a member is assigned."""

    assigned_partitions: tuple[ConsumerProtocolPartitions, ...]
    user_data: bytes | None = wire(nullable="0+", default=None)


def subscribed_topics(metadata: Iterable[bytes]) -> frozenset[str] | None:
    """The topics of these subscriptions; None if one of them cannot be decoded."""
    found: dict[str, None] = {}
    for data in metadata:
        if len(data) < VERSION_LAYOUT.size:
            return None
        try:
            subscription, _ = decode(SubscriptionTopics, 0, data, VERSION_LAYOUT.size)
        except WireError:
            return None
        found |= dict.fromkeys(subscription.topics)
    return frozenset(found)


def decode_subscription(data: bytes) -> ConsumerProtocolSubscription:
    """Raises `InconsistentProtocol` if it cannot be decoded."""
    try:
        found, _ = decode(ConsumerProtocolSubscription, version_of(data), data, VERSION_LAYOUT.size)
    except WireError as error:
        raise InconsistentProtocol(f"Invalid consumer protocol subscription: {error}.") from None
    return found


def decode_assignment(data: bytes, topics: Topics) -> PartitionSet:
    """The assigned partitions of existing topics; none, if it cannot be decoded."""
    try:
        found, _ = decode(ConsumerProtocolAssignment, version_of(data), data, VERSION_LAYOUT.size)
    except WireError:
        return ()
    return resolve_partitions(found.assigned_partitions, topics)


def resolve_partitions(named: Iterable[ConsumerProtocolPartitions], topics: Topics) -> PartitionSet:
    """Replace names of topics by ids; unknown topics are left out."""
    found = [(topics.find(one.topic), one.partitions) for one in named]
    return partition_set(TopicPartition(topic.id, one) for topic, some in found if topic is not None for one in some)


def encode_assignment(partitions: PartitionSet, topics: Topics, subscription: bytes) -> bytes:
    """The assignment for a member with this subscription, in the version of the subscription."""
    named = [(topics.name_of(topic), some) for topic, some in by_topic(partitions).items()]
    value = ConsumerProtocolAssignment(
        assigned_partitions=tuple(
            ConsumerProtocolPartitions(topic=name, partitions=some) for name, some in named if name is not None
        )
    )
    version = version_of(subscription)
    return VERSION_LAYOUT.pack(version) + encode(value, version)


def version_of(data: bytes) -> int:
    """The version of a subscription or an assignment, or the newest that we know if that is older."""
    if len(data) < VERSION_LAYOUT.size:
        raise WireError(f"{len(data)} bytes are too short for a version")
    found: int = VERSION_LAYOUT.unpack_from(data)[0]
    return max(0, min(found, NEWEST_VERSION))
