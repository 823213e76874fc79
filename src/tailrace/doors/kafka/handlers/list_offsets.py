"""ListOffsets: a partition's start, end, the offset for a time, or of the record with the largest timestamp.

Negative timestamps name places: -1 the end, -2 the start, -3 the largest timestamp, -4 the start of what is stored
here, -5 the end of what is stored remotely (nothing is).
"""

from typing import Final

from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.faults import error_of
from tailrace.model.faults import Fault, UnsupportedVersion
from tailrace.wire.messages.list_offsets import (
    ListOffsetsRequest,
    ListOffsetsResponse,
    PartitionAsked,
    PartitionOffset,
    TopicOffsets,
)

latest: Final = -1
earliest: Final = -2
max_timestamp: Final = -3
earliest_local: Final = -4
latest_tiered: Final = -5
first_with: Final = {max_timestamp: 7, earliest_local: 8, latest_tiered: 9}


async def list_offsets(request: ListOffsetsRequest, call: Call) -> ListOffsetsResponse:
    topics = [
        TopicOffsets(
            name=topic.name, partitions=tuple([await _look_up(call, topic.name, one) for one in topic.partitions])
        )
        for topic in request.topics
    ]
    return ListOffsetsResponse(topics=tuple(topics))


async def _look_up(call: Call, topic: str, asked: PartitionAsked) -> PartitionOffset:
    try:
        return await _found(call, topic, asked)
    except Fault as fault:
        return PartitionOffset(partition=asked.partition, error_code=error_of(fault))


async def _found(call: Call, topic: str, asked: PartitionAsked) -> PartitionOffset:
    partition = call.node.replicas.find(topic, asked.partition)
    partition.require_leader()
    partition.require_epoch(asked.current_leader_epoch)
    log, limit = partition.log, partition.high_watermark
    if call.version < first_with.get(asked.timestamp, 0) or asked.timestamp < latest_tiered:
        raise UnsupportedVersion(f"timestamp {asked.timestamp} means nothing in ListOffsets version {call.version}")
    match asked.timestamp:
        case -1:
            return PartitionOffset(partition=asked.partition, offset=limit, leader_epoch=partition.epoch)
        case -2 | -4:
            epoch = log.epochs.epoch_at(log.start)
            return PartitionOffset(partition=asked.partition, offset=log.start, leader_epoch=epoch)
        case -5:
            return PartitionOffset(partition=asked.partition)
        case -3:
            found = await log.max_timestamp(limit)
        case _:
            found = await log.offset_for_time(asked.timestamp, limit)
    if found is None:
        return PartitionOffset(partition=asked.partition)
    return PartitionOffset(
        partition=asked.partition, timestamp=found.timestamp, offset=found.offset, leader_epoch=found.epoch
    )
