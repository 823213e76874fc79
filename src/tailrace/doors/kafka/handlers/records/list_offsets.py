"""ListOffsets: a partition's start, end, the offset for a time, or of the record with the largest timestamp.

Negative timestamps name places: -1 the end, -2 the start, -3 the largest timestamp, -4 the start of what is stored
here; -5 the end of what is stored remotely and -6 the start of what is still to be stored there (nothing is).
Who reads committed records finds nothing at the last stable offset or above, which is the end for it.
"""

from collections.abc import Container
from typing import Final

from tailrace.broker.partitions.partition import Partition
from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.controller_changes import repeated
from tailrace.doors.kafka.request_limits import require_few
from tailrace.log.log import Timed
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
FIRST_WITH: Final = {  # the versions that know these places
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
NO_TIME: Final = -1
NOTHING: Final = Timed(offset=-1, timestamp=NO_TIME, epoch=-1)


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
    try:
        if (topic, asked.partition) in twice:
            raise InvalidRequest(f"partition {asked.partition} of {topic} is named twice in one request")
        if asked.timestamp < 0 and call.version < FIRST_WITH.get(asked.timestamp, call.version + 1):
            raise UnsupportedVersion(f"timestamp {asked.timestamp} means nothing in ListOffsets {call.version}")
        partition = call.node.hosted.find(topic, asked.partition)
        partition.require_leader()
        partition.require_epoch(asked.current_leader_epoch)
        found = await _find(partition, asked.timestamp, partition.readable(committed=committed))
    except Fault as fault:
        return PartitionOffset(partition=asked.partition, error_code=error_of(fault))
    return PartitionOffset(
        partition=asked.partition, offset=found.offset, timestamp=found.timestamp, leader_epoch=found.epoch
    )


async def _find(partition: Partition, timestamp: int, limit: int) -> Timed:
    log = partition.log
    if timestamp == LATEST:
        return Timed(limit, NO_TIME, partition.epoch)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        epoch = log.epochs.epoch_at(log.start)
        return Timed(log.start, NO_TIME, partition.epoch if epoch < 0 else epoch)
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return NOTHING
    if timestamp == MAX_TIMESTAMP:
        return await log.max_timestamp(limit) or NOTHING
    return await log.offset_for_time(timestamp, limit) or NOTHING
