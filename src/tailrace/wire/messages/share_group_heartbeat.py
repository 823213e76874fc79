"""ShareGroupHeartbeat: join, stay in or leave a share group (KIP-932), whose coordinator computes the assignment.

Several members may be assigned the same partition. Fields that have not changed since the last heartbeat are null.
"""

from tailrace.model.ids import Id
from tailrace.wire.schema import Int16, Int32, message, struct, wire


@message(api=76, versions="1-1", flexible="0+")
class ShareGroupHeartbeatRequest:
    """Member epoch 0 joins, -1 leaves. None: unchanged."""

    group_id: str
    member_id: str  # chosen by the client
    member_epoch: Int32
    rack_id: str | None = wire(nullable="0+", default=None)
    subscribed_topic_names: tuple[str, ...] | None = wire(nullable="0+", default=None)


@struct
class AssignedTopic:
    """Partitions of one topic."""

    topic_id: Id
    partitions: tuple[Int32, ...]


@struct
class Assignment:
    """The whole assignment of a member."""

    topic_partitions: tuple[AssignedTopic, ...]


@message(api=76, versions="1-1", flexible="0+")
class ShareGroupHeartbeatResponse:
    """The member's epoch, and its assignment if it changed."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: str | None = wire(nullable="0+", default=None)
    member_id: str | None = wire(nullable="0+", default=None)
    member_epoch: Int32 = 0
    heartbeat_interval_ms: Int32 = 0
    assignment: Assignment | None = wire(nullable="0+", default=None)
