"""DeleteShareGroupOffsets: delete what a share group without members has stored about topics. Each topic has its own
result.
"""

from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.handlers.groups.topic_ids import topic_id
from tailrace.doors.kafka.request_limits import once
from tailrace.model.faults import Fault
from tailrace.wire.faults import error_of
from tailrace.wire.messages.delete_share_group_offsets import (
    DeletedTopic,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)


async def delete_share_group_offsets(
    request: DeleteShareGroupOffsetsRequest, call: Call
) -> DeleteShareGroupOffsetsResponse:
    topics = list(once(one.name for one in request.topics))
    try:
        results = await call.services.share_groups.delete_offsets(call.caller, request.group_id, topics)
    except Fault as fault:
        return DeleteShareGroupOffsetsResponse(error_code=error_of(fault), error_message=str(fault))
    return DeleteShareGroupOffsetsResponse(topics=tuple(_topic(call, name, fault) for name, fault in results.items()))


def _topic(call: Call, name: str, fault: Fault | None) -> DeletedTopic:
    if fault is None:
        return DeletedTopic(name=name, topic_id=topic_id(call, name))
    return DeletedTopic(name=name, topic_id=topic_id(call, name), error_code=error_of(fault), error_message=str(fault))
