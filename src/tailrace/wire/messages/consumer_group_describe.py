"""ConsumerGroupDescribe: the members of a KIP-848 group, with their current and target assignments."""

from tailrace.model.ids import Id
from tailrace.wire.messages.authorization import NOT_ASKED
from tailrace.wire.schema import Int8, Int16, Int32, message, struct, wire


@message(api=69, versions="0-1", flexible="0+")
class ConsumerGroupDescribeRequest:
    """Which groups to describe."""

    group_ids: tuple[str, ...]
    include_authorized_operations: bool


@struct
class AssignedTopic:
    """Partitions of one topic."""

    topic_id: Id
    topic_name: str
    partitions: tuple[Int32, ...]


@struct
class Assigned:
    """An assignment: partitions of any number of topics."""

    topic_partitions: tuple[AssignedTopic, ...]


@struct
class ConsumerMember:
    """One member."""

    member_id: str
    instance_id: str | None = wire(nullable="0+", default=None)
    rack_id: str | None = wire(nullable="0+", default=None)
    member_epoch: Int32
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...]
    subscribed_topic_regex: str | None = wire(nullable="0+", default=None)
    assignment: Assigned
    target_assignment: Assigned
    member_type: Int8 = wire(since=1, default=-1, ignorable=True)  # 0: classic protocol, 1: KIP-848


@struct
class DescribedConsumerGroup:
    """One group, or an error."""

    error_code: Int16 = 0
    error_message: str | None = wire(nullable="0+", default=None)
    group_id: str
    group_state: str = ""
    group_epoch: Int32 = 0
    assignment_epoch: Int32 = 0
    assignor_name: str = ""
    members: tuple[ConsumerMember, ...] = ()
    authorized_operations: Int32 = NOT_ASKED


@message(api=69, versions="0-1", flexible="0+")
class ConsumerGroupDescribeResponse:
    """The groups, in the order of the request."""

    throttle_time_ms: Int32 = 0
    groups: tuple[DescribedConsumerGroup, ...]
