"""Heartbeat: a member says that it is there, and hears whether it must join again."""

from tailrace.wire.schema import Int16, Int32, message, wire


@message(api=12, versions="0-4", flexible="4+")
class HeartbeatRequest:
    """Who is there, in which generation."""

    group_id: str
    generation_id: Int32
    member_id: str
    group_instance_id: str | None = wire(since=3, nullable="3+", default=None)


@message(api=12, versions="0-4", flexible="4+")
class HeartbeatResponse:
    """Nothing, or why it has to do something."""

    throttle_time_ms: Int32 = wire(since=1, default=0, ignorable=True)
    error_code: Int16 = 0
