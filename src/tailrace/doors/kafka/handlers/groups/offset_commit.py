"""OffsetCommit: commit offsets of a group. The response is sent when they are committed; each partition has its own
result.

A group without members accepts commits from any client: administrators reset offsets that way, and consumers that
assign partitions themselves store theirs.
"""

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
FIRST_TO_KNOW_OF_GROUPS: Final = 9  # GROUP_ID_NOT_FOUND; before, the error was ILLEGAL_GENERATION


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
