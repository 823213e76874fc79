"""LeaveGroup: remove members from a classic group, sent by a member or by an administrator."""

from tailrace.wire.schema import Int16, Int32, message, struct, wire


@struct
class LeavingMember:
    """A member to remove, by its member id, or a static member by its instance id alone."""

    member_id: str
    group_instance_id: str | None = wire(nullable="0+", default=None)
    reason: str | None = wire(since=5, nullable="5+", default=None, ignorable=True)


@message(api=13, versions="0-5", flexible="4+")
class LeaveGroupRequest:
    """The members to remove: `member_id` up to version 2, `members` from 3 on."""

    group_id: str
    member_id: str = wire(until=2, default="")
    members: tuple[LeavingMember, ...] = wire(since=3, default=())


@struct
class LeftMember:
    """The result for one member."""

    member_id: str
    group_instance_id: str | None = wire(nullable="0+")
    error_code: Int16 = 0


@message(api=13, versions="0-5", flexible="4+")
class LeaveGroupResponse:
    """One error code, and from version 3 on a result for each member."""

    throttle_time_ms: Int32 = wire(since=1, default=0, ignorable=True)
    error_code: Int16 = 0
    members: tuple[LeftMember, ...] = wire(since=3, default=(), ignorable=True)
