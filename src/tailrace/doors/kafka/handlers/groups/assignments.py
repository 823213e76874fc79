"""The partitions assigned to members, in the responses that consumer groups and share groups have in common."""

from typing import TypeVar

from tailrace.doors.kafka.call import Call
from tailrace.groups.consumer.partition_sets import PartitionSet, by_topic
from tailrace.groups.consumer.requests import HeartbeatAnswer
from tailrace.wire.messages.consumer_group_describe import Assigned, AssignedTopic
from tailrace.wire.messages.consumer_group_heartbeat import Assignment, GroupHeartbeatResponse, OwnedTopic

Response = TypeVar("Response", bound=GroupHeartbeatResponse)


def heartbeat_response(response: type[Response], answer: HeartbeatAnswer) -> Response:
    assignment = None
    if answer.assigned is not None:
        parts = by_topic(answer.assigned).items()
        assignment = Assignment(
            topic_partitions=tuple(OwnedTopic(topic_id=topic, partitions=some) for topic, some in parts)
        )
    return response(
        member_id=answer.member_id,
        member_epoch=answer.epoch,
        heartbeat_interval_ms=answer.interval_ms,
        assignment=assignment,
    )


def described_assignment(call: Call, partitions: PartitionSet) -> Assigned:
    """Topics that were deleted are left out."""
    find = call.services.topics.find
    return Assigned(
        topic_partitions=tuple(
            AssignedTopic(topic_id=topic_id, topic_name=topic.name, partitions=some)
            for topic_id, some in by_topic(partitions).items()
            if (topic := find(call.caller, topic_id)) is not None
        )
    )
