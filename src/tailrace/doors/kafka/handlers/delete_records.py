"""DeleteRecords: move a partition's start forward. Committed through the metadata log, so that a new leader cannot
bring records back.

-1 stands for the high watermark: nothing that could be read is kept. A start below the present one changes nothing.
"""

from collections.abc import Container
from functools import partial
from typing import Final

from tailrace.broker.partition import Partition
from tailrace.cluster.controller import Controller
from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.changes import change_each, repeated
from tailrace.doors.kafka.faults import error_of
from tailrace.model.faults import Fault, InvalidRequest, OffsetOutOfRange, StorageFailed
from tailrace.model.proposal import Proposal
from tailrace.wire.messages.delete_records import (
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    PartitionToTrim,
    TrimmedPartition,
    TrimmedTopic,
)

everything: Final = -1
no_offset: Final = -1


async def delete_records(request: DeleteRecordsRequest, call: Call) -> DeleteRecordsResponse:
    twice = repeated((topic.name, one.partition) for topic in request.topics for one in topic.partitions)
    changes = [
        partial(_propose_once, call, topic.name, one, twice) for topic in request.topics for one in topic.partitions
    ]
    decided: list[Partition | Fault] = await change_each(call, changes)
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
        return TrimmedPartition(partition=number, low_watermark=no_offset, error_code=error_of(answer))
    return TrimmedPartition(partition=number, low_watermark=answer.log.start)


def _propose_once(
    call: Call, topic: str, wanted: PartitionToTrim, twice: Container[tuple[str, int]], controller: Controller
) -> Proposal[Partition]:
    if (topic, wanted.partition) in twice:
        raise InvalidRequest(f"{topic}-{wanted.partition} is named twice")
    return _propose(call, topic, wanted, controller)


def _propose(call: Call, topic: str, wanted: PartitionToTrim, controller: Controller) -> Proposal[Partition]:
    partition = call.node.replicas.find(topic, wanted.partition)
    partition.require_leader()
    limit = partition.high_watermark
    start = limit if wanted.offset == everything else wanted.offset
    if not 0 <= start <= limit:
        raise OffsetOutOfRange(f"{partition.name}: offset {start} is not from 0 to the high watermark {limit}")
    if start <= partition.log.start:
        return Proposal(partition)
    moved = controller.move_start(partition.key.topic_id, wanted.partition, start)
    return Proposal(partition, moved.records)
