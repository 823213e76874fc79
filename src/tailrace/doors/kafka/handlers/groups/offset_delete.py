"""OffsetDelete: forget how far a group has read topics that none of its members reads any more."""

from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.handlers.groups.group_members import coordinator_of
from tailrace.doors.kafka.request_limits import once
from tailrace.model.faults import Fault, UnknownTopic
from tailrace.model.ids import PartitionName
from tailrace.wire.faults import error_of
from tailrace.wire.messages.offset_delete import (
    ForgottenPartition,
    ForgottenTopic,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    TopicToForget,
)


async def offset_delete(request: OffsetDeleteRequest, call: Call) -> OffsetDeleteResponse:
    places = once(PartitionName(topic.name, one.partition) for topic in request.topics for one in topic.partitions)
    there = [place for place in places if _is_there(call, place)]
    try:
        coordinator = coordinator_of(call, request.group_id)
        results = await coordinator.act(lambda machine, turn: machine.forget(request.group_id, there, turn))
    except Fault as fault:
        return OffsetDeleteResponse(error_code=error_of(fault))
    outcome = dict(zip(there, results, strict=True))
    return OffsetDeleteResponse(topics=tuple(_answer(topic, outcome) for topic in request.topics))


def _is_there(call: Call, place: PartitionName) -> bool:
    topic = call.node.hosted.image.topics.get(place.topic)
    return topic is not None and 0 <= place.partition < len(topic.partitions)


def _answer(topic: TopicToForget, outcome: dict[PartitionName, Fault | None]) -> ForgottenTopic:
    unknown = UnknownTopic(f"there is no such partition of {topic.name}")
    faults = [
        (one.partition, outcome.get(PartitionName(topic.name, one.partition), unknown)) for one in topic.partitions
    ]
    return ForgottenTopic(
        name=topic.name,
        partitions=tuple(
            ForgottenPartition(partition=number, error_code=0 if fault is None else error_of(fault))
            for number, fault in faults
        ),
    )
