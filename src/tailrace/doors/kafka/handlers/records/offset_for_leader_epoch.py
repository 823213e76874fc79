"""OffsetForLeaderEpoch: the end offset of a leader epoch, by which a consumer detects log truncation (KIP-320)."""

from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.request_limits import require_few
from tailrace.model.faults import Fault
from tailrace.wire.faults import error_of
from tailrace.wire.messages.offset_for_leader_epoch import (
    EpochEnd,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    PartitionAsked,
    TopicEpochEnds,
)


async def offset_for_leader_epoch(request: OffsetForLeaderEpochRequest, call: Call) -> OffsetForLeaderEpochResponse:
    require_few(sum(len(topic.partitions) for topic in request.topics))
    return OffsetForLeaderEpochResponse(
        topics=tuple(
            TopicEpochEnds(
                name=topic.name, partitions=tuple(_look_up(call, topic.name, one) for one in topic.partitions)
            )
            for topic in request.topics
        )
    )


def _look_up(call: Call, topic: str, asked: PartitionAsked) -> EpochEnd:
    try:
        epoch, end = call.services.reader.end_of_epoch(
            call.caller, topic, asked.partition, asked.current_leader_epoch, asked.leader_epoch
        )
    except Fault as fault:
        return EpochEnd(partition=asked.partition, error_code=error_of(fault))
    return EpochEnd(partition=asked.partition, leader_epoch=epoch, end_offset=end)
