"""The bytes that consumers of the classic protocol embed in JoinGroup and SyncGroup, with topics by name.

Subscriptions are written in version 0, which says all that an eager assignor needs and which every client reads.
"""

from typing import Final

from tailrace.client.groups.member import Partitions
from tailrace.client.offsets import by_topic
from tailrace.groups.consumer_protocol import (
    VERSION_LAYOUT,
    ConsumerProtocolAssignment,
    ConsumerProtocolPartitions,
    ConsumerProtocolSubscription,
    version_of,
)
from tailrace.model.ids import PartitionName
from tailrace.wire.compile import decode, encode

VERSION: Final = 0


def encode_subscription(topics: tuple[str, ...]) -> bytes:
    return VERSION_LAYOUT.pack(VERSION) + encode(ConsumerProtocolSubscription(topics=topics), VERSION)


def encode_assignment(partitions: Partitions) -> bytes:
    assigned = tuple(
        ConsumerProtocolPartitions(topic=topic, partitions=tuple(one.partition for one in ones))
        for topic, ones in by_topic(partitions).items()
    )
    return VERSION_LAYOUT.pack(VERSION) + encode(ConsumerProtocolAssignment(assigned_partitions=assigned), VERSION)


def decode_topics(subscription: bytes) -> tuple[str, ...]:
    """The topics of a subscription; WireError if it cannot be read."""
    found, _ = decode(ConsumerProtocolSubscription, version_of(subscription), subscription, VERSION_LAYOUT.size)
    return found.topics


def decode_assignment(data: bytes) -> Partitions:
    """The partitions of an assignment; empty bytes are none. WireError if it cannot be read."""
    if not data:
        return ()
    found, _ = decode(ConsumerProtocolAssignment, version_of(data), data, VERSION_LAYOUT.size)
    named = (PartitionName(topic.topic, one) for topic in found.assigned_partitions for one in topic.partitions)
    return tuple(sorted(dict.fromkeys(named)))
