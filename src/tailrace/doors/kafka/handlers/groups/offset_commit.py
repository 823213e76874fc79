"""OffsetCommit: write down how far a group has read. Answered when that is committed; each partition on its own.

A group that nobody is in takes commits from anybody: so administrators reset it, and clients that assign partitions
themselves keep their place."""

from typing import Final

from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.handlers.groups.offsets_to_commit import by_topic, find_topic, offsets_to_commit
from tailrace.groups.requests import MemberId
from tailrace.model.faults import Fault, GroupNotFound
from tailrace.model.ids import Id
from tailrace.wire.errors import Error
from tailrace.wire.faults import error_of
from tailrace.wire.messages.offset_commit import (
    CommittedPartition,
    CommittedTopic,
    OffsetCommitRequest,
    OffsetCommitResponse,
)

FIRST_BY_ID: Final = 10
FIRST_WITH_MEMBER_EPOCHS: Final = 9
FIRST_TO_KNOW_OF_GROUPS: Final = 9  # before, a group that is not there had another generation


async def offset_commit(request: OffsetCommitRequest, call: Call) -> OffsetCommitResponse:
    by_id = call.version >= FIRST_BY_ID
    wanted = [(find_topic(call, Id(one.topic_id) if by_id else one.name), one.partitions) for one in request.topics]
    faults = await call.services.groups.commit_offsets(
        call.caller,
        request.group_id,
        MemberId(request.member_id, request.group_instance_id),
        request.generation_id_or_member_epoch,
        offsets_to_commit(wanted),
        kept_ms=request.retention_time_ms,
        knows_epochs=call.version >= FIRST_WITH_MEMBER_EPOCHS,
    )
    codes = by_topic(wanted, [_code(fault, call) for fault in faults])
    return OffsetCommitResponse(
        topics=tuple(
            CommittedTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=tuple(CommittedPartition(partition=number, error_code=code) for number, code in answers),
            )
            for topic, answers in zip(request.topics, codes, strict=True)
        )
    )


def _code(fault: Fault | None, call: Call) -> int:
    if fault is None:
        return Error.NONE
    if isinstance(fault, GroupNotFound) and call.version < FIRST_TO_KNOW_OF_GROUPS:
        return Error.ILLEGAL_GENERATION
    return error_of(fault)
