"""What consumers of the classic protocol say to each other inside JoinGroup and SyncGroup, in Kafka's form.

Brokers need not know it, but for a group in which both protocols meet: there the coordinator reads what such a member
subscribes to and has, and writes what it gets. Each begins with its version, two bytes; newer ones begin like ours.
"""

import struct
from collections.abc import Iterable
from typing import Final

from tailrace.groups.consumer.shares import Share, by_topic, share
from tailrace.groups.topics import Topics
from tailrace.model.faults import InconsistentProtocol
from tailrace.model.ids import TopicPartition
from tailrace.wire.compile import decode, encode
from tailrace.wire.primitives import WireError
from tailrace.wire.schema import Int32, record, wire
from tailrace.wire.schema import struct as part

VERSION_LAYOUT: Final = struct.Struct(">h")
NEWEST: Final = 3


@part
class EmbeddedPartitions:
    """Partitions of one topic."""

    topic: str
    partitions: tuple[Int32, ...]


@record(type=0, versions="0-3", flexible="none")
class EmbeddedSubscription:
    """What a member reads, and what it has."""

    topics: tuple[str, ...]
    user_data: bytes | None = wire(nullable="0+", default=None)
    owned_partitions: tuple[EmbeddedPartitions, ...] = wire(since=1, default=(), ignorable=True)
    generation_id: Int32 = wire(since=2, default=-1, ignorable=True)
    rack_id: str | None = wire(since=3, nullable="3+", default=None, ignorable=True)


@record(type=0, versions="0-3", flexible="none")
class EmbeddedAssignment:
    """What a member gets."""

    assigned_partitions: tuple[EmbeddedPartitions, ...]
    user_data: bytes | None = wire(nullable="0+", default=None)


def subscription_of(data: bytes) -> EmbeddedSubscription:
    """`InconsistentProtocol` when a member says something else than consumers do."""
    try:
        found, _ = decode(EmbeddedSubscription, _version(data), data, VERSION_LAYOUT.size)
    except WireError as error:
        raise InconsistentProtocol(f"a subscription that consumers would not understand: {error}") from None
    return found


def assignment_of(data: bytes, topics: Topics) -> Share:
    """What a member got; nothing, if it cannot be read or is gone."""
    try:
        found, _ = decode(EmbeddedAssignment, _version(data), data, VERSION_LAYOUT.size)
    except WireError:
        return ()
    return partitions_of(found.assigned_partitions, topics)


def partitions_of(named: Iterable[EmbeddedPartitions], topics: Topics) -> Share:
    found = [(topics.find(one.topic), one.partitions) for one in named]
    return share(TopicPartition(topic.id, one) for topic, some in found if topic is not None for one in some)


def assignment(partitions: Share, topics: Topics, like: bytes) -> bytes:
    """For a member that subscribed like this, in the version that it knows."""
    named = [(topics.name_of(topic), some) for topic, some in by_topic(partitions).items()]
    value = EmbeddedAssignment(
        assigned_partitions=tuple(
            EmbeddedPartitions(topic=name, partitions=some) for name, some in named if name is not None
        )
    )
    version = _version(like)
    return VERSION_LAYOUT.pack(version) + encode(value, version)


def _version(data: bytes) -> int:
    if len(data) < VERSION_LAYOUT.size:
        raise WireError(f"{len(data)} bytes")
    found: int = VERSION_LAYOUT.unpack_from(data)[0]
    return max(0, min(found, NEWEST))
