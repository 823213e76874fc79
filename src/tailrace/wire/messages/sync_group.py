"""SyncGroup: the group leader sends the assignment, and every member receives its own part."""

from tailrace.wire.schema import Int16, Int32, message, struct, wire


@struct
class MemberAssignment:
    """The assignment of one member; only clients can parse it."""

    member_id: str
    assignment: bytes


@message(api=14, versions="0-5", flexible="4+")
class SyncGroupRequest:
    """The member and its generation; from the group leader also the assignments of all members."""

    group_id: str
    generation_id: Int32
    member_id: str
    group_instance_id: str | None = wire(since=3, nullable="3+", default=None)
    protocol_type: str | None = wire(since=5, nullable="5+", default=None, ignorable=True)
    protocol_name: str | None = wire(since=5, nullable="5+", default=None, ignorable=True)
    assignments: tuple[MemberAssignment, ...] = ()


@message(api=14, versions="0-5", flexible="4+")
class SyncGroupResponse:
    """The assignment of this member."""

    throttle_time_ms: Int32 = wire(since=1, default=0, ignorable=True)
    error_code: Int16 = 0
    protocol_type: str | None = wire(since=5, nullable="5+", default=None, ignorable=True)
    protocol_name: str | None = wire(since=5, nullable="5+", default=None, ignorable=True)
    assignment: bytes = b""
