"""ShareGroupDescribe: the members of share groups (KIP-932), with their assignments."""

from tailrace.wire.messages.authorization import NOT_ASKED
from tailrace.wire.messages.consumer_group_describe import Assigned
from tailrace.wire.schema import Int16, Int32, message, struct, wire


@message(api=77, versions="1-1", flexible="0+")
class ShareGroupDescribeRequest:
    """Which groups to describe."""

    group_ids: tuple[str, ...]
    include_authorized_operations: bool


@struct
class ShareMember:
    """One member."""

    member_id: str
    rack_id: str | None = wire(nullable="0+", default=None)
    member_epoch: Int32
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...]
    assignment: Assigned


@struct
class DescribedShareGroup:
    """One group, or an error."""

    error_code: Int16 = 0
    error_message: str | None = wire(nullable="0+", default=None)
    group_id: str
    group_state: str = ""
    group_epoch: Int32 = 0
    assignment_epoch: Int32 = 0
    assignor_name: str = ""
    members: tuple[ShareMember, ...] = ()
    authorized_operations: Int32 = NOT_ASKED


@message(api=77, versions="1-1", flexible="0+")
class ShareGroupDescribeResponse:
    """The groups, in the order of the request."""

    throttle_time_ms: Int32 = 0
    groups: tuple[DescribedShareGroup, ...]
