"""ConsumerGroupHeartbeat: join a group of the consumer protocol (KIP-848), stay in it, get the assignment that the
coordinator has computed, and leave.
"""

from typing import Final

from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.handlers.groups.assignments import heartbeat_response
from tailrace.doors.kafka.handlers.groups.group_members import client_host, client_id
from tailrace.groups.consumer.partition_sets import PartitionSet, partition_set
from tailrace.groups.consumer.requests import JOIN_EPOCH, Heartbeat
from tailrace.groups.requests import MemberId
from tailrace.model.faults import Fault, InvalidRequest
from tailrace.model.ids import Id, TopicPartition
from tailrace.model.limits import GROUP_OWNED_PARTITIONS_MAX
from tailrace.wire.faults import error_of
from tailrace.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    OwnedTopic,
)

LAST_TO_BE_GIVEN_AN_ID: Final = 0


async def consumer_group_heartbeat(
    request: ConsumerGroupHeartbeatRequest, call: Call
) -> ConsumerGroupHeartbeatResponse:
    try:
        if not request.group_id:
            raise InvalidRequest("GroupId can't be empty.")
        beat = _beat(request, call)
        answer = await call.services.groups.consumer_heartbeat(
            call.caller, request.group_id, beat, call.client.time_slice
        )
    except Fault as fault:
        return ConsumerGroupHeartbeatResponse(error_code=error_of(fault), error_message=str(fault))
    return heartbeat_response(ConsumerGroupHeartbeatResponse, answer)


def _beat(request: ConsumerGroupHeartbeatRequest, call: Call) -> Heartbeat:
    member_id = request.member_id
    if not member_id and request.member_epoch == JOIN_EPOCH and call.version <= LAST_TO_BE_GIVEN_AN_ID:
        member_id = call.services.groups.new_member_id(call.caller, request.instance_id)
    return Heartbeat(
        identity=MemberId(member_id, request.instance_id),
        epoch=request.member_epoch,
        client_id=client_id(call),
        client_host=client_host(call),
        rack_id=request.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        names=request.subscribed_topic_names,
        expression=request.subscribed_topic_regex,
        assignor=request.server_assignor,
        owned=None if request.topic_partitions is None else _owned(request.topic_partitions),
    )


def _owned(topics: tuple[OwnedTopic, ...]) -> PartitionSet:
    count = sum(len(topic.partitions) for topic in topics)
    if count > GROUP_OWNED_PARTITIONS_MAX:
        raise InvalidRequest(f"the member owns {count} partitions, at most {GROUP_OWNED_PARTITIONS_MAX} are allowed")
    return partition_set(TopicPartition(Id(topic.topic_id), one) for topic in topics for one in topic.partitions)
