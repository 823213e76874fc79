"""Heartbeat: a member stays in its classic group, and learns whether it must rejoin."""

from tailrace.wire.schema import Int16, Int32, message, wire


@message(api=12, versions="0-4", flexible="4+")
class HeartbeatRequest:
    """The member and its generation."""

    group_id: str
    generation_id: Int32
    member_id: str
    group_instance_id: str | None = wire(since=3, nullable="3+", default=None)


@message(api=12, versions="0-4", flexible="4+")
class HeartbeatResponse:
    """An error code; REBALANCE_IN_PROGRESS means that the member must rejoin."""

    throttle_time_ms: Int32 = wire(since=1, default=0, ignorable=True)
    error_code: Int16 = 0
