"""AlterShareGroupOffsets: let a share group without members start at other offsets. Each partition has its result."""

from collections.abc import Mapping

from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.handlers.groups.topic_ids import topic_id
from tailrace.doors.kafka.request_limits import require_few
from tailrace.model.faults import Fault
from tailrace.model.ids import PartitionName
from tailrace.wire.faults import error_of
from tailrace.wire.messages.alter_share_group_offsets import (
    AlteredTopic,
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)
from tailrace.wire.messages.results import ExplainedResult


async def alter_share_group_offsets(
    request: AlterShareGroupOffsetsRequest, call: Call
) -> AlterShareGroupOffsetsResponse:
    wanted = {
        PartitionName(topic.name, one.partition): one.start_offset
        for topic in request.topics
        for one in topic.partitions
    }
    require_few(len(wanted))
    try:
        results = await call.services.share_groups.alter_offsets(call.caller, request.group_id, wanted)
    except Fault as fault:
        return AlterShareGroupOffsetsResponse(error_code=error_of(fault), error_message=str(fault))
    return AlterShareGroupOffsetsResponse(topics=_topics(call, results))


def _topics(call: Call, results: Mapping[PartitionName, Fault | None]) -> tuple[AlteredTopic, ...]:
    found: dict[str, list[ExplainedResult]] = {}
    for name, fault in results.items():
        found.setdefault(name.topic, []).append(_partition(name.partition, fault))
    return tuple(
        AlteredTopic(name=topic, topic_id=topic_id(call, topic), partitions=tuple(some))
        for topic, some in found.items()
    )


def _partition(number: int, fault: Fault | None) -> ExplainedResult:
    if fault is None:
        return ExplainedResult(partition=number)
    return ExplainedResult(partition=number, error_code=error_of(fault), error_message=str(fault))
