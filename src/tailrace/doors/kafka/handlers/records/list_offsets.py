"""ListOffsets: a partition's start, end, the offset for a time, or of the record with the largest timestamp.

Negative timestamps name positions: -1 the end, -2 the start, -3 the largest timestamp, -4 the start of what is stored
on the broker; -5 the end of what is stored remotely and -6 the start of what is still to be stored there (there is no
remote storage). For readers of committed records the end is the last stable offset.
"""

from collections.abc import Container
from typing import Final

from tailrace.broker.services.reader import Position
from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.request_limits import repeated, require_few
from tailrace.model.faults import Fault, InvalidRequest, UnsupportedVersion
from tailrace.wire.faults import error_of
from tailrace.wire.messages.list_offsets import (
    ListOffsetsRequest,
    ListOffsetsResponse,
    PartitionAsked,
    PartitionOffset,
    TopicOffsets,
)

READ_COMMITTED: Final = 1
LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6
FIRST_WITH: Final = {  # the versions that know these positions
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
POSITIONS: Final = {
    LATEST: Position.LATEST,
    EARLIEST: Position.EARLIEST,
    EARLIEST_LOCAL: Position.EARLIEST,
    MAX_TIMESTAMP: Position.MAX_TIMESTAMP,
    LATEST_TIERED: Position.NOWHERE,
    EARLIEST_PENDING_UPLOAD: Position.NOWHERE,
}


async def list_offsets(request: ListOffsetsRequest, call: Call) -> ListOffsetsResponse:
    require_few(sum(len(topic.partitions) for topic in request.topics))
    twice = repeated((topic.name, one.partition) for topic in request.topics for one in topic.partitions)
    committed = request.isolation_level == READ_COMMITTED
    topics = [
        TopicOffsets(
            name=topic.name,
            partitions=tuple([await _look_up(call, topic.name, one, twice, committed) for one in topic.partitions]),
        )
        for topic in request.topics
    ]
    return ListOffsetsResponse(topics=tuple(topics))


async def _look_up(
    call: Call, topic: str, asked: PartitionAsked, twice: Container[tuple[str, int]], committed: bool
) -> PartitionOffset:
    number, timestamp = asked.partition, asked.timestamp
    try:
        if (topic, number) in twice:
            raise InvalidRequest(f"partition {number} of {topic} is named twice in one request")
        if timestamp < 0 and call.version < FIRST_WITH.get(timestamp, call.version + 1):
            raise UnsupportedVersion(f"timestamp {timestamp} means nothing in ListOffsets {call.version}")
        found = await call.services.reader.find_offset(
            call.caller,
            topic,
            number,
            asked.current_leader_epoch,
            POSITIONS.get(timestamp, timestamp),
            committed=committed,
        )
    except Fault as fault:
        return PartitionOffset(partition=number, error_code=error_of(fault))
    return PartitionOffset(partition=number, offset=found.offset, timestamp=found.timestamp, leader_epoch=found.epoch)
