"""ConsumerGroupHeartbeat: be in a group whose coordinator shares out the work (KIP-848), from joining to leaving."""

from typing import Final

from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.groups import client_host, client_id, new_member_id, seat_of
from tailrace.groups.consumer.requests import Heartbeat, Told, joining
from tailrace.groups.consumer.shares import Share, by_topic, share
from tailrace.groups.requests import MemberId
from tailrace.model.faults import Fault, InvalidRequest
from tailrace.model.ids import Id, TopicPartition
from tailrace.model.limits import group_owned_partitions_max
from tailrace.wire.faults import error_of
from tailrace.wire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    OwnedTopic,
)

last_to_be_given_an_id: Final = 0


async def consumer_group_heartbeat(
    request: ConsumerGroupHeartbeatRequest, call: Call
) -> ConsumerGroupHeartbeatResponse:
    try:
        if not request.group_id:
            raise InvalidRequest("a group needs a name")
        beat = _beat(request, call)
        seat = seat_of(call, request.group_id)
        told = await seat.act(lambda machine, turn: machine.beat(request.group_id, beat, turn))
    except Fault as fault:
        return ConsumerGroupHeartbeatResponse(error_code=error_of(fault), error_message=str(fault))
    return _told(told)


def _beat(request: ConsumerGroupHeartbeatRequest, call: Call) -> Heartbeat:
    member_id = request.member_id
    if not member_id and request.member_epoch == joining and call.version <= last_to_be_given_an_id:
        member_id = new_member_id(call, request.instance_id)
    return Heartbeat(
        who=MemberId(member_id, request.instance_id),
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


def _owned(topics: tuple[OwnedTopic, ...]) -> Share:
    count = sum(len(topic.partitions) for topic in topics)
    if count > group_owned_partitions_max:
        raise InvalidRequest(f"a member that has {count} partitions; {group_owned_partitions_max} are allowed")
    return share(TopicPartition(Id(topic.topic_id), one) for topic in topics for one in topic.partitions)


def _told(told: Told) -> ConsumerGroupHeartbeatResponse:
    assignment = None
    if told.assigned is not None:
        parts = by_topic(told.assigned).items()
        assignment = Assignment(
            topic_partitions=tuple(OwnedTopic(topic_id=topic, partitions=some) for topic, some in parts)
        )
    return ConsumerGroupHeartbeatResponse(
        member_id=told.member_id,
        member_epoch=told.epoch,
        heartbeat_interval_ms=told.interval_ms,
        assignment=assignment,
    )
