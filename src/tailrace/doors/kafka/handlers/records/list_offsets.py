"""ListOffsets: the offset of a position in a partition, or of the first record with a timestamp or a later one.

Negative timestamps are positions: -1 latest, -2 earliest, -3 the record with the largest timestamp, -4 earliest in
local storage (the same as earliest), -5 latest in tiered storage and -6 earliest pending upload to it (there is no
tiered storage, so both are not found). Latest is the high watermark; with read_committed, the last stable offset.
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
FIRST_WITH: Final = {  # the first version with each position
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
            raise InvalidRequest(f"the request names {topic}-{number} twice")
        if timestamp < 0 and call.version < FIRST_WITH.get(timestamp, call.version + 1):
            raise UnsupportedVersion(f"ListOffsets version {call.version} does not support timestamp {timestamp}")
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
