"""OffsetCommit: commit offsets of a group. The response is sent when they are committed; each partition has its own
result.

A group without members accepts commits from any client: administrators reset offsets that way, and consumers that
assign partitions themselves store theirs.
"""

from collections.abc import Sequence
from typing import Final

from tailrace.broker.services.groups import WhenCommitted
from tailrace.doors.kafka.call import Call, Deferred
from tailrace.doors.kafka.handlers.groups.offsets_to_commit import find_topic, offsets_to_commit
from tailrace.groups.requests import MemberId
from tailrace.model.faults import Fault, GroupNotFound
from tailrace.model.ids import Id
from tailrace.wire.errors import Error
from tailrace.wire.faults import error_of
from tailrace.wire.messages.offset_commit import (
    CommittedTopic,
    OffsetCommitRequest,
    OffsetCommitResponse,
)
from tailrace.wire.messages.results import PartitionResult

FIRST_BY_ID: Final = 10
FIRST_WITH_MEMBER_EPOCHS: Final = 9
FIRST_TO_KNOW_OF_GROUPS: Final = 9  # GROUP_ID_NOT_FOUND; before, the error was ILLEGAL_GENERATION


def begin_offset_commit(request: OffsetCommitRequest, call: Call, done: WhenCommitted) -> None:
    by_id = call.version >= FIRST_BY_ID
    wanted = [(find_topic(call, Id(one.topic_id) if by_id else one.name), one.partitions) for one in request.topics]
    call.services.groups.commit_offsets(
        call.caller,
        request.group_id,
        MemberId(request.member_id, request.group_instance_id),
        request.generation_id_or_member_epoch,
        offsets_to_commit(wanted),
        done,
        kept_ms=request.retention_time_ms,
        knows_epochs=call.version >= FIRST_WITH_MEMBER_EPOCHS,
    )


def offset_commit_response(
    request: OffsetCommitRequest, call: Call, faults: Sequence[Fault | None]
) -> OffsetCommitResponse:
    left = iter(faults)
    topics = []
    for topic in request.topics:
        results = [
            PartitionResult(partition=one.partition, error_code=_code(next(left), call)) for one in topic.partitions
        ]
        topics.append(CommittedTopic(name=topic.name, topic_id=topic.topic_id, partitions=tuple(results)))
    return OffsetCommitResponse(topics=tuple(topics))


OFFSET_COMMIT: Final = Deferred(begin_offset_commit, offset_commit_response)


def _code(fault: Fault | None, call: Call) -> int:
    if fault is None:
        return 0
    if isinstance(fault, GroupNotFound) and call.version < FIRST_TO_KNOW_OF_GROUPS:
        return Error.ILLEGAL_GENERATION
    return error_of(fault)
