"""AlterShareGroupOffsets: let a share group without members start at other offsets. Each partition has its result."""

from collections.abc import Mapping

from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.handlers.by_topic import by_topic, explained
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
    return tuple(
        AlteredTopic(
            name=topic,
            topic_id=topic_id(call, topic),
            partitions=tuple(explained(number, fault) for number, fault in faults.items()),
        )
        for topic, faults in by_topic(results).items()
    )
