"""ConsumerGroupHeartbeat: be in a group whose coordinator shares out the work (KIP-848), from joining to leaving."""

from typing import Final

from tailrace.broker.groups.partition_coordinator import GroupPartitionCoordinator
from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.handlers.groups.group_members import client_host, client_id, coordinator_of, new_member_id
from tailrace.doors.kafka.time_slices import TimeSlice as ClientTurn
from tailrace.groups.consumer.expressions import Tried, compiled
from tailrace.groups.consumer.requests import JOINING, Heartbeat, HeartbeatAnswer
from tailrace.groups.consumer.shares import Share, by_topic, share
from tailrace.groups.groups import Groups
from tailrace.groups.requests import MemberId
from tailrace.groups.turn import GroupTurn
from tailrace.model.faults import Fault, InvalidExpression, InvalidRequest
from tailrace.model.ids import Id, TopicPartition
from tailrace.model.limits import GROUP_OWNED_PARTITIONS_MAX
from tailrace.wire.faults import error_of
from tailrace.wire.messages.consumer_group_heartbeat import (
    Assignment,
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
            raise InvalidRequest("a group needs a name")
        beat = _beat(request, call)
        coordinator = coordinator_of(call, request.group_id)
        tried = await _tried(request.group_id, beat.expression, coordinator, call.connection.turn)

        def act(machine: Groups, turn: GroupTurn) -> HeartbeatAnswer:
            turn.tried = tried
            return machine.beat(request.group_id, beat, turn)

        told = await coordinator.act(act)
    except Fault as fault:
        return ConsumerGroupHeartbeatResponse(error_code=error_of(fault), error_message=str(fault))
    return _told(told)


async def _tried(
    group_id: str, expression: str | None, coordinator: GroupPartitionCoordinator, turn: ClientTurn
) -> Tried:
    """Try expressions on the names of topics before the coordinator has to: others have their turn meanwhile."""
    tried: dict[str, dict[str, bool]] = {}
    turn.begin()
    while left := coordinator.untried(group_id, expression, tried):
        for one, names in left.items():
            results = tried.setdefault(one, {})
            try:
                matches = compiled(one).fullmatch
            except InvalidExpression:  # a new one is refused by the coordinator; an old one keeps what it has
                results |= dict.fromkeys(names, False)
                continue
            for name in names:
                results[name] = matches(name) is not None
                if turn.is_over:
                    await turn.next()
    return tried


def _beat(request: ConsumerGroupHeartbeatRequest, call: Call) -> Heartbeat:
    member_id = request.member_id
    if not member_id and request.member_epoch == JOINING and call.version <= LAST_TO_BE_GIVEN_AN_ID:
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
    if count > GROUP_OWNED_PARTITIONS_MAX:
        raise InvalidRequest(f"a member that has {count} partitions; {GROUP_OWNED_PARTITIONS_MAX} are allowed")
    return share(TopicPartition(Id(topic.topic_id), one) for topic in topics for one in topic.partitions)


def _told(told: HeartbeatAnswer) -> ConsumerGroupHeartbeatResponse:
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
