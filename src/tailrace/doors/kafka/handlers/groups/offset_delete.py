"""OffsetDelete: delete committed offsets of topics that the group is no longer subscribed to."""

from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.request_limits import once
from tailrace.model.faults import Fault
from tailrace.model.ids import PartitionName
from tailrace.wire.faults import error_of
from tailrace.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    TopicToForget,
)
from tailrace.wire.messages.results import PartitionResult, TopicResults


async def offset_delete(request: OffsetDeleteRequest, call: Call) -> OffsetDeleteResponse:
    places = list(
        once(PartitionName(topic.name, one.partition) for topic in request.topics for one in topic.partitions)
    )
    try:
        faults = await call.services.groups.delete_offsets(call.caller, request.group_id, places)
    except Fault as fault:
        return OffsetDeleteResponse(error_code=error_of(fault))
    outcome = dict(zip(places, faults, strict=True))
    return OffsetDeleteResponse(topics=tuple(_answer(topic, outcome) for topic in request.topics))


def _answer(topic: TopicToForget, outcome: dict[PartitionName, Fault | None]) -> TopicResults:
    faults = [(one.partition, outcome[PartitionName(topic.name, one.partition)]) for one in topic.partitions]
    return TopicResults(
        name=topic.name,
        partitions=tuple(
            PartitionResult(partition=number, error_code=0 if fault is None else error_of(fault))
            for number, fault in faults
        ),
    )
