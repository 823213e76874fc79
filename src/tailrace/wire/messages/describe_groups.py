"""DescribeGroups: the members of classic groups and their assignments."""

from tailrace.wire.messages.authorization import NOT_ASKED
from tailrace.wire.schema import Int16, Int32, message, struct, wire


@message(api=15, versions="0-6", flexible="5+")
class DescribeGroupsRequest:
    """Which groups to describe."""

    groups: tuple[str, ...]
    include_authorized_operations: bool = wire(since=3, default=False)


@struct
class DescribedMember:
    """One member; only clients can parse its metadata and assignment."""

    member_id: str
    group_instance_id: str | None = wire(since=4, nullable="4+", default=None, ignorable=True)
    client_id: str
    client_host: str
    member_metadata: bytes = b""
    member_assignment: bytes = b""


@struct
class DescribedGroup:
    """One group, or an error."""

    error_code: Int16 = 0
    error_message: str | None = wire(since=6, nullable="6+", default=None, ignorable=True)
    group_id: str
    group_state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: tuple[DescribedMember, ...] = ()
    authorized_operations: Int32 = wire(since=3, default=NOT_ASKED, ignorable=True)


@message(api=15, versions="0-6", flexible="5+")
class DescribeGroupsResponse:
    """The groups, in the order of the request."""

    throttle_time_ms: Int32 = wire(since=1, default=0, ignorable=True)
    groups: tuple[DescribedGroup, ...]
