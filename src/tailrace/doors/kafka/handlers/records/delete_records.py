"""DeleteRecords: move a partition's start forward. Committed through the metadata log, so that a new leader cannot
bring records back.

-1 stands for the high watermark: nothing that could be read is kept. A start below the present one changes nothing.
"""

import asyncio
from functools import partial
from typing import Final

from tailrace.broker.partitions.partition import Partition
from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.controller_changes import repeated
from tailrace.doors.kafka.request_limits import require_few, together
from tailrace.doors.kafka.request_timeout import request_timeout_s
from tailrace.model.faults import (
    Fault,
    InvalidRequest,
    InvalidTopicName,
    OffsetOutOfRange,
    StorageFailed,
    TimedOut,
)
from tailrace.model.ids import TopicPartition
from tailrace.model.limits import PARTITIONS_PER_REQUEST_MAX
from tailrace.wire.faults import error_of
from tailrace.wire.messages.delete_records import (
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    PartitionToTrim,
    TrimmedPartition,
    TrimmedTopic,
)
from tailrace.wire.messages.peers.move_start import MoveStart

EVERYTHING: Final = -1
NO_OFFSET: Final = -1


async def delete_records(request: DeleteRecordsRequest, call: Call) -> DeleteRecordsResponse:
    wanted = [(topic.name, one) for topic in request.topics for one in topic.partitions]
    require_few(len(wanted), PARTITIONS_PER_REQUEST_MAX)
    twice = repeated((topic, one.partition) for topic, one in wanted)
    within_s = request_timeout_s(request)
    decided = await together(
        wanted, lambda named: _trim(call, *named, (named[0], named[1].partition) in twice, within_s)
    )
    await call.node.hosted.settle()
    answers = iter(decided)
    return DeleteRecordsResponse(
        topics=tuple(
            TrimmedTopic(
                name=topic.name, partitions=tuple(_trimmed(one.partition, next(answers)) for one in topic.partitions)
            )
            for topic in request.topics
        )
    )


def _trimmed(number: int, answer: Partition | Fault) -> TrimmedPartition:
    if isinstance(answer, Partition) and answer.log.refusal is not None:  # the start is committed, and moves later
        answer = StorageFailed(f"{answer.name} is {answer.log.refusal}")
    if isinstance(answer, Fault):
        return TrimmedPartition(partition=number, low_watermark=NO_OFFSET, error_code=error_of(answer))
    return TrimmedPartition(partition=number, low_watermark=answer.log.start)


async def _trim(call: Call, topic: str, wanted: PartitionToTrim, twice: bool, within_s: float) -> Partition | Fault:
    try:
        if twice:
            raise InvalidRequest(f"{topic}-{wanted.partition} is named twice")
        partition = call.node.hosted.find(topic, wanted.partition)
        start = _new_start(partition, wanted)
        if start > partition.log.start:
            request = MoveStart(topic_id=partition.key.topic_id, partition=wanted.partition, start=start)
            async with asyncio.timeout(within_s):
                await call.node.calls.controller(request, within_s)
                await call.node.until(partial(_is_known, call, partition.key, start))
    except Fault as fault:
        return fault
    except TimeoutError:
        return TimedOut(f"{topic}-{wanted.partition}: this broker does not know yet that its start was moved")
    return partition


def _new_start(partition: Partition, wanted: PartitionToTrim) -> int:
    if partition.is_internal:
        raise InvalidTopicName(f"{partition.name} keeps what coordinators remember: they cut it themselves")
    partition.require_leader()
    limit = partition.high_watermark
    start = limit if wanted.offset == EVERYTHING else wanted.offset
    if not 0 <= start <= limit:
        raise OffsetOutOfRange(f"{partition.name}: offset {start} is not from 0 to the high watermark {limit}")
    return start


def _is_known(call: Call, key: TopicPartition, start: int) -> bool:
    """Whether this broker has heard that a partition's start was moved, or that its topic is gone."""
    topics = call.node.hosted.image.topics_by_id
    return key.topic_id not in topics or topics[key.topic_id].partitions[key.partition].start >= start
