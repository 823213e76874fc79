"""The records of a consumer group of KIP-848 in `__consumer_offsets`, under Kafka's names and numbers.

The group's epoch and its members' subscriptions say what is wanted; the target assignment says who shall have what, the
current assignments who has what. A key's version is its type.
"""

from tailrace.model.ids import Id
from tailrace.wire.schema import Int8, Int32, Int64, record, wire
from tailrace.wire.schema import struct as part


@record(type=3, versions="3-3", flexible="none")
class ConsumerGroupMetadataKey:
    """A consumer group."""

    group: str


@record(type=3, versions="0-0", flexible="0+")
class ConsumerGroupMetadataValue:
    """Its epoch, which rises whenever the work must be shared out anew."""

    epoch: Int32
    metadata_hash: Int64 = wire(tag=0, default=0)  # of the topics that are read, with their partitions; 0: not known


@record(type=4, versions="4-4", flexible="none")
class ConsumerGroupPartitionMetadataKey:
    """What Kafka wrote before 4.1 instead of the hash. It is read, for the sake of such logs, and never written."""

    group: str


@part
class RacksOfPartition:
    """Where a partition's replicas are."""

    partition: Int32
    racks: tuple[str, ...]


@part
class StoredTopic:
    """A topic that is read."""

    topic_id: Id
    topic_name: str
    num_partitions: Int32
    partition_metadata: tuple[RacksOfPartition, ...]


@record(type=4, versions="0-0", flexible="0+")
class ConsumerGroupPartitionMetadataValue:
    """The topics that are read, with their partitions."""

    topics: tuple[StoredTopic, ...]


@record(type=5, versions="5-5", flexible="none")
class ConsumerGroupMemberMetadataKey:
    """A member."""

    group: str
    member_id: str


@part
class ClassicProtocol:
    """One way of sharing work that a member of the classic protocol knows."""

    name: str
    metadata: bytes


@part
class ClassicMemberMetadata:
    """What a member said in JoinGroup."""

    session_timeout_ms: Int32
    supported_protocols: tuple[ClassicProtocol, ...]


@record(type=5, versions="0-0", flexible="0+")
class ConsumerGroupMemberMetadataValue:
    """What a member says of itself."""

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
    """Who shall have what."""

    group: str


@record(type=6, versions="0-0", flexible="0+")
class ConsumerGroupTargetAssignmentMetadataValue:
    """For which epoch of the group it was worked out."""

    assignment_epoch: Int32


@record(type=7, versions="7-7", flexible="none")
class ConsumerGroupTargetAssignmentMemberKey:
    """What one member shall have."""

    group: str
    member_id: str


@part
class StoredPartitions:
    """Partitions of one topic."""

    topic_id: Id
    partitions: tuple[Int32, ...]


@record(type=7, versions="0-0", flexible="0+")
class ConsumerGroupTargetAssignmentMemberValue:
    """All that one member shall have."""

    topic_partitions: tuple[StoredPartitions, ...]


@record(type=8, versions="8-8", flexible="none")
class ConsumerGroupCurrentMemberAssignmentKey:
    """What one member has."""

    group: str
    member_id: str


@record(type=8, versions="0-0", flexible="0+")
class ConsumerGroupCurrentMemberAssignmentValue:
    """How far one member has come on its way to what it shall have."""

    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    assigned_partitions: tuple[StoredPartitions, ...]
    partitions_pending_revocation: tuple[StoredPartitions, ...]


@record(type=16, versions="16-16", flexible="none")
class ConsumerGroupRegularExpressionKey:
    """A regular expression that some members subscribe by."""

    group: str
    regular_expression: str


@record(type=16, versions="0-0", flexible="0+")
class ConsumerGroupRegularExpressionValue:
    """The topics whose names it matches."""

    topics: tuple[str, ...]
    version: Int64  # of the metadata that was looked at
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
