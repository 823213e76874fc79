"""Answers of a group's coordinator to member m, for tests of members of consumer groups and of share groups."""

from typing import TypeVar

from tailrace.model.ids import Id
from tailrace.wire.messages.consumer_group_heartbeat import Assignment, GroupHeartbeatResponse, OwnedTopic

T = Id(b"t" * 16)

Response = TypeVar("Response", bound=GroupHeartbeatResponse)


def heartbeat_answer(response: type[Response], *assigned: int, epoch: int, changed: bool) -> Response:
    """With these partitions of topic t as the assignment, if it changed."""
    topics = (OwnedTopic(topic_id=T, partitions=assigned),) if assigned else ()
    assignment = Assignment(topic_partitions=topics) if changed else None
    return response(member_id="m", member_epoch=epoch, heartbeat_interval_ms=1000, assignment=assignment)
