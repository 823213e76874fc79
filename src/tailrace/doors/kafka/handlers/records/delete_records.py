"""DeleteRecords: delete records below an offset by moving the log start offset forward.

Offset -1 means the high watermark: all committed records are deleted. An offset below the log start changes nothing.
"""

from typing import Final

from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.request_limits import repeated, require_few
from tailrace.doors.kafka.request_timeout import request_timeout_s
from tailrace.model.faults import Fault, InvalidRequest
from tailrace.model.limits import PARTITIONS_PER_REQUEST_MAX
from tailrace.wire.faults import error_of
from tailrace.wire.messages.delete_records import (
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    TrimmedPartition,
    TrimmedTopic,
)

EVERYTHING: Final = -1
NO_OFFSET: Final = -1


async def delete_records(request: DeleteRecordsRequest, call: Call) -> DeleteRecordsResponse:
    named = [(topic.name, one.partition, one.offset) for topic in request.topics for one in topic.partitions]
    require_few(len(named), PARTITIONS_PER_REQUEST_MAX)
    twice = repeated((topic, number) for topic, number, _ in named)
    wanted = [
        (topic, number, None if offset == EVERYTHING else offset)
        for topic, number, offset in named
        if (topic, number) not in twice
    ]
    deleted = iter(await call.services.writer.delete_records(call.caller, wanted, request_timeout_s(request)))

    def answer(topic: str, number: int) -> TrimmedPartition:
        is_twice = (topic, number) in twice
        result = InvalidRequest(f"the request names {topic}-{number} twice") if is_twice else next(deleted)
        if isinstance(result, Fault):
            return TrimmedPartition(partition=number, low_watermark=NO_OFFSET, error_code=error_of(result))
        return TrimmedPartition(partition=number, low_watermark=result)

    return DeleteRecordsResponse(
        topics=tuple(
            TrimmedTopic(name=one.name, partitions=tuple(answer(one.name, each.partition) for each in one.partitions))
            for one in request.topics
        )
    )
