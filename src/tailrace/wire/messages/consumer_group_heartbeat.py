"""ConsumerGroupHeartbeat: join, stay in or leave a group whose coordinator computes the assignment (KIP-848).

A member also reports with it which partitions it owns. Fields that have not changed since the last heartbeat are null.
"""

from tailrace.model.ids import Id
from tailrace.wire.messages.response import ExplainedResponse
from tailrace.wire.schema import Int32, message, struct, wire


@struct
class OwnedTopic:
    """Partitions of one topic."""

    topic_id: Id
    partitions: tuple[Int32, ...]


@message(api=68, versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatRequest:
    """Member epoch 0 joins, -1 leaves, -2 leaves as a static member that will be back. None: unchanged."""

    group_id: str
    member_id: str
    member_epoch: Int32
    instance_id: str | None = wire(nullable="0+", default=None)
    rack_id: str | None = wire(nullable="0+", default=None)
    rebalance_timeout_ms: Int32 = -1  # -1: unchanged
    subscribed_topic_names: tuple[str, ...] | None = wire(nullable="0+", default=None)
    subscribed_topic_regex: str | None = wire(since=1, nullable="1+", default=None)
    server_assignor: str | None = wire(nullable="0+", default=None)
    topic_partitions: tuple[OwnedTopic, ...] | None = wire(nullable="0+", default=None)  # owned partitions


@struct
class Assignment:
    """The whole assignment of a member."""

    topic_partitions: tuple[OwnedTopic, ...]


@struct
class GroupHeartbeatResponse(ExplainedResponse):
    """The member's epoch, and its assignment if it changed. ShareGroupHeartbeat has the same response."""

    member_id: str | None = wire(nullable="0+", default=None)
    member_epoch: Int32 = 0
    heartbeat_interval_ms: Int32 = 0
    assignment: Assignment | None = wire(nullable="0+", default=None)


@message(api=68, versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatResponse(GroupHeartbeatResponse):
    """The response to a member of a consumer group."""
