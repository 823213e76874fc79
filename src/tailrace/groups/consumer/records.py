"""The records of a consumer group (KIP-848) in `__consumer_offsets`, with Kafka's names and numbers.

The group's epoch changes with its members' subscriptions. The target assignment says which partitions each member is
to own, the current assignments which it owns now. A key's version is its type.
"""

from tailrace.model.ids import Id
from tailrace.wire.schema import Int8, Int32, Int64, record, wire
from tailrace.wire.schema import struct as part


@record(type=3, versions="3-3", flexible="none")
class ConsumerGroupMetadataKey:
    """Names a consumer group."""

    group: str


@record(type=3, versions="0-0", flexible="0+")
class ConsumerGroupMetadataValue:
    """The group epoch, which is bumped whenever a new target assignment is needed."""

    epoch: Int32
    metadata_hash: Int64 = wire(tag=0, default=0)  # of the subscribed topics; 0: unknown, or there are none


@record(type=4, versions="4-4", flexible="none")
class ConsumerGroupPartitionMetadataKey:
    """What Kafka wrote before 4.1 in place of the hash: it is decoded, so that such logs can be read, and not used."""

    group: str


@part
class RacksOfPartition:
    """The racks of a partition's replicas."""

    partition: Int32
    racks: tuple[str, ...]


@part
class StoredTopic:
    """A subscribed topic."""

    topic_id: Id
    topic_name: str
    num_partitions: Int32
    partition_metadata: tuple[RacksOfPartition, ...]


@record(type=4, versions="0-0", flexible="0+")
class ConsumerGroupPartitionMetadataValue:
    """The subscribed topics, with their partitions."""

    topics: tuple[StoredTopic, ...]


@record(type=5, versions="5-5", flexible="none")
class ConsumerGroupMemberMetadataKey:
    """Names a member."""

    group: str
    member_id: str


@part
class ClassicProtocol:
    """A protocol (assignor) that a member of the classic protocol supports, with its metadata."""

    name: str
    metadata: bytes


@part
class ClassicMemberMetadata:
    """What a member of the classic protocol declared in JoinGroup."""

    session_timeout_ms: Int32
    supported_protocols: tuple[ClassicProtocol, ...]


@record(type=5, versions="0-0", flexible="0+")
class ConsumerGroupMemberMetadataValue:
    """What a member's client declares."""

    instance_id: str | None = wire(nullable="0+")
    rack_id: str | None = wire(nullable="0+")
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...]
    subscribed_topic_regex: str | None = wire(nullable="0+")
    rebalance_timeout_ms: Int32 = -1
    server_assignor: str | None = wire(nullable="0+")
    classic_member_metadata: ClassicMemberMetadata | None = wire(tag=0, nullable="0+", default=None)


@record(type=6, versions="6-6", flexible="none")
class ConsumerGroupTargetAssignmentMetadataKey:
    """Names the target assignment of a group."""

    group: str


@record(type=6, versions="0-0", flexible="0+")
class ConsumerGroupTargetAssignmentMetadataValue:
    """The group epoch for which the target assignment was computed."""

    assignment_epoch: Int32


@record(type=7, versions="7-7", flexible="none")
class ConsumerGroupTargetAssignmentMemberKey:
    """Names the target assignment of a member."""

    group: str
    member_id: str


@part
class StoredPartitions:
    """Partitions of one topic."""

    topic_id: Id
    partitions: tuple[Int32, ...]


@record(type=7, versions="0-0", flexible="0+")
class ConsumerGroupTargetAssignmentMemberValue:
    """The partitions that a member is to own."""

    topic_partitions: tuple[StoredPartitions, ...]


@record(type=8, versions="8-8", flexible="none")
class ConsumerGroupCurrentMemberAssignmentKey:
    """Names the current assignment of a member."""

    group: str
    member_id: str


@record(type=8, versions="0-0", flexible="0+")
class ConsumerGroupCurrentMemberAssignmentValue:
    """The partitions that a member owns, and how far it has been reconciled with its target assignment."""

    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    assigned_partitions: tuple[StoredPartitions, ...]
    partitions_pending_revocation: tuple[StoredPartitions, ...]


@record(type=16, versions="16-16", flexible="none")
class ConsumerGroupRegularExpressionKey:
    """Names a regular expression that members subscribe with."""

    group: str
    regular_expression: str


@record(type=16, versions="0-0", flexible="0+")
class ConsumerGroupRegularExpressionValue:
    """The topics that the regular expression matches."""

    topics: tuple[str, ...]
    version: Int64  # the revision of the topics that were matched
    timestamp: Int64


ConsumerKey = (
    ConsumerGroupMetadataKey
    | ConsumerGroupPartitionMetadataKey
    | ConsumerGroupMemberMetadataKey
    | ConsumerGroupTargetAssignmentMetadataKey
    | ConsumerGroupTargetAssignmentMemberKey
    | ConsumerGroupCurrentMemberAssignmentKey
    | ConsumerGroupRegularExpressionKey
)
ConsumerValue = (
    ConsumerGroupMetadataValue
    | ConsumerGroupPartitionMetadataValue
    | ConsumerGroupMemberMetadataValue
    | ConsumerGroupTargetAssignmentMetadataValue
    | ConsumerGroupTargetAssignmentMemberValue
    | ConsumerGroupCurrentMemberAssignmentValue
    | ConsumerGroupRegularExpressionValue
)
