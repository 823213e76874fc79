"""The records of a share group (KIP-932) in `__consumer_offsets`, with Kafka's names and numbers.

They are about its members and their assignments, as those of a consumer group; which records of a partition have been
delivered is stored in `__share_group_state` (`queues/records.py`). A key's version is its type.
"""

from tailrace.groups.consumer.records import StoredPartitions
from tailrace.model.ids import Id
from tailrace.wire.schema import Int8, Int32, Int64, record, wire
from tailrace.wire.schema import struct as part


@record(type=10, versions="10-10", flexible="none")
class ShareGroupMemberMetadataKey:
    """Names a member."""

    group: str
    member_id: str


@record(type=10, versions="0-0", flexible="0+")
class ShareGroupMemberMetadataValue:
    """What a member's client declares."""

    rack_id: str | None = wire(nullable="0+")
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...]


@record(type=11, versions="11-11", flexible="none")
class ShareGroupMetadataKey:
    """Names a share group."""

    group: str


@record(type=11, versions="0-0", flexible="0+")
class ShareGroupMetadataValue:
    """The group epoch, which is bumped whenever a new target assignment is needed."""

    epoch: Int32
    metadata_hash: Int64  # of the subscribed topics


@record(type=12, versions="12-12", flexible="none")
class ShareGroupTargetAssignmentMetadataKey:
    """Names the target assignment of a group."""

    group: str


@record(type=12, versions="0-0", flexible="0+")
class ShareGroupTargetAssignmentMetadataValue:
    """The group epoch for which the target assignment was computed, and when."""

    assignment_epoch: Int32
    assignment_timestamp: Int64 = wire(tag=0, default=0)  # 0: unknown, written before Kafka 4.3 (KIP-1263)


@record(type=13, versions="13-13", flexible="none")
class ShareGroupTargetAssignmentMemberKey:
    """Names the target assignment of a member."""

    group: str
    member_id: str


@record(type=13, versions="0-0", flexible="0+")
class ShareGroupTargetAssignmentMemberValue:
    """The partitions that a member is to read."""

    topic_partitions: tuple[StoredPartitions, ...]


@record(type=14, versions="14-14", flexible="none")
class ShareGroupCurrentMemberAssignmentKey:
    """Names the current assignment of a member."""

    group: str
    member_id: str


@record(type=14, versions="0-0", flexible="0+")
class ShareGroupCurrentMemberAssignmentValue:
    """The partitions that a member reads. It may lag one epoch behind, if it missed an answer."""

    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    assigned_partitions: tuple[StoredPartitions, ...]


@record(type=15, versions="15-15", flexible="none")
class ShareGroupStatePartitionMetadataKey:
    """Names a share group."""

    group: str


@part
class TopicWithState:
    """A topic, and those of its partitions of which the group has state.

    Partitions of one topic that are to be initialized with different start offsets are in several of these. The tag is
    not Kafka's, which skips it."""

    topic_id: Id
    topic_name: str
    partitions: tuple[Int32, ...]
    start_offset: Int64 = wire(tag=10000, default=-1)  # of initializing ones; -1: by the group's reset policy


@part
class TopicToDelete:
    """A topic of which the group's state is being deleted."""

    topic_id: Id
    topic_name: str


@record(type=15, versions="0-0", flexible="0+")
class ShareGroupStatePartitionMetadataValue:
    """Of which partitions the group has state in `__share_group_state`, or is about to have it."""

    initializing_topics: tuple[TopicWithState, ...]
    initialized_topics: tuple[TopicWithState, ...]
    deleting_topics: tuple[TopicToDelete, ...]


ShareKey = (
    ShareGroupMemberMetadataKey
    | ShareGroupMetadataKey
    | ShareGroupTargetAssignmentMetadataKey
    | ShareGroupTargetAssignmentMemberKey
    | ShareGroupCurrentMemberAssignmentKey
    | ShareGroupStatePartitionMetadataKey
)
ShareValue = (
    ShareGroupMemberMetadataValue
    | ShareGroupMetadataValue
    | ShareGroupTargetAssignmentMetadataValue
    | ShareGroupTargetAssignmentMemberValue
    | ShareGroupCurrentMemberAssignmentValue
    | ShareGroupStatePartitionMetadataValue
)
