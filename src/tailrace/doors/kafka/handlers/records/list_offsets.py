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

read_committed: Final = 1
latest: Final = -1
earliest: Final = -2
max_timestamp: Final = -3
earliest_local: Final = -4
latest_tiered: Final = -5
earliest_pending_upload: Final = -6
first_with: Final = {  # the versions that know these places
    latest: 1,
    earliest: 1,
    max_timestamp: 7,
    earliest_local: 8,
    latest_tiered: 9,
    earliest_pending_upload: 11,
}
no_time: Final = -1
nothing: Final = Timed(offset=-1, timestamp=no_time, epoch=-1)


async def list_offsets(request: ListOffsetsRequest, call: Call) -> ListOffsetsResponse:
    require_few(sum(len(topic.partitions) for topic in request.topics))
    twice = repeated((topic.name, one.partition) for topic in request.topics for one in topic.partitions)
    committed = request.isolation_level == read_committed
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
        if asked.timestamp < 0 and call.version < first_with.get(asked.timestamp, call.version + 1):
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
    if timestamp == latest:
        return Timed(limit, no_time, partition.epoch)
    if timestamp in (earliest, earliest_local):
        epoch = log.epochs.epoch_at(log.start)
        return Timed(log.start, no_time, partition.epoch if epoch < 0 else epoch)
    if timestamp in (latest_tiered, earliest_pending_upload):
        return nothing
    if timestamp == max_timestamp:
        return await log.max_timestamp(limit) or nothing
    return await log.offset_for_time(timestamp, limit) or nothing
