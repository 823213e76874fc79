"""ShareGroupHeartbeat: join, stay in or leave a share group (KIP-932), whose coordinator computes the assignment.

Several members may be assigned the same partition. Fields that have not changed since the last heartbeat are null.
"""

from tailrace.wire.messages.consumer_group_heartbeat import GroupHeartbeatResponse
from tailrace.wire.schema import Int32, message, wire


@message(api=76, versions="1-1", flexible="0+")
class ShareGroupHeartbeatRequest:
    """Member epoch 0 joins, -1 leaves. None: unchanged."""

    group_id: str
    member_id: str  # chosen by the client
    member_epoch: Int32
    rack_id: str | None = wire(nullable="0+", default=None)
    subscribed_topic_names: tuple[str, ...] | None = wire(nullable="0+", default=None)


@message(api=76, versions="1-1", flexible="0+")
class ShareGroupHeartbeatResponse(GroupHeartbeatResponse):
    """The response to a member of a share group."""
