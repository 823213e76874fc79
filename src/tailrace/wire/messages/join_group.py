"""JoinGroup: join a classic group, or rejoin it for the next generation."""

from tailrace.wire.schema import Int16, Int32, message, struct, wire


@struct
class JoiningProtocol:
    """An assignment strategy that the member supports, and its metadata (subscription) for that strategy."""

    name: str
    metadata: bytes


@message(api=11, versions="0-9", flexible="6+")
class JoinGroupRequest:
    """The member and its protocols. An empty `member_id` means that the member has none yet."""

    group_id: str
    session_timeout_ms: Int32
    rebalance_timeout_ms: Int32 = wire(since=1, default=-1, ignorable=True)  # -1: the session timeout
    member_id: str
    group_instance_id: str | None = wire(since=5, nullable="5+", default=None)  # only static members have one
    protocol_type: str
    protocols: tuple[JoiningProtocol, ...]  # in order of preference
    reason: str | None = wire(since=8, nullable="8+", default=None, ignorable=True)


@struct
class JoinedMember:
    """A member, as the group leader receives it."""

    member_id: str
    group_instance_id: str | None = wire(since=5, nullable="5+", default=None, ignorable=True)
    metadata: bytes


@message(api=11, versions="0-9", flexible="6+")
class JoinGroupResponse:
    """The new generation. Only the group leader receives the list of members."""

    throttle_time_ms: Int32 = wire(since=2, default=0, ignorable=True)
    error_code: Int16 = 0
    generation_id: Int32 = -1
    protocol_type: str | None = wire(since=7, nullable="7+", default=None, ignorable=True)
    protocol_name: str | None = wire(nullable="7+", default="")
    leader: str = ""
    skip_assignment: bool = wire(since=9, default=False, ignorable=True)
    member_id: str = ""
    members: tuple[JoinedMember, ...] = ()
