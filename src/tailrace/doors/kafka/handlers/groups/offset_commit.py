"""OffsetCommit: write down how far a group has read. Answered when that is committed; each partition on its own.

A group that nobody is in takes commits from anybody: so administrators reset it, and clients that assign partitions
themselves keep their place."""

from collections.abc import Mapping
from functools import partial
from typing import Final

from tailrace.cluster.image import Topic
from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.handlers.groups.offsets_to_commit import by_name, commit_each
from tailrace.groups.offsets import Committed
from tailrace.groups.requests import MemberId
from tailrace.model.faults import Fault, GroupNotFound, IllegalGeneration, UnknownTopicId
from tailrace.model.ids import Id, PartitionName, show_id
from tailrace.wire.messages.offset_commit import (
    CommittedPartition,
    CommittedTopic,
    OffsetCommitRequest,
    OffsetCommitResponse,
)

FIRST_BY_ID: Final = 10
FIRST_WITH_MEMBER_EPOCHS: Final = 9
FIRST_TO_KNOW_OF_GROUPS: Final = 9  # before, a group that is not there had another generation
AS_THE_BROKER_SAYS: Final = -1
LAST_MS: Final = 2**63 - 1  # that can be written down


async def offset_commit(request: OffsetCommitRequest, call: Call) -> OffsetCommitResponse:
    by_id = call.version >= FIRST_BY_ID
    wanted = [
        (_by_id(call, one.topic_id) if by_id else by_name(call, one.name), one.partitions) for one in request.topics
    ]
    codes = await commit_each(call, wanted, partial(_commit, request, call), _expires_ms(request, call))
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


def _by_id(call: Call, topic_id: Id) -> Topic | Fault:
    topic = call.node.hosted.image.topics_by_id.get(topic_id)
    return UnknownTopicId(f"there is no topic with id {show_id(topic_id)}") if topic is None else topic


def _expires_ms(request: OffsetCommitRequest, call: Call) -> int:
    kept_ms = request.retention_time_ms
    if kept_ms == AS_THE_BROKER_SAYS:
        return AS_THE_BROKER_SAYS
    return min(max(0, call.node.ports.clock.wall_ms() + kept_ms), LAST_MS)


async def _commit(request: OffsetCommitRequest, call: Call, wanted: Mapping[PartitionName, Committed]) -> None:
    who = MemberId(request.member_id, request.group_instance_id)
    group_id, generation = request.group_id, request.generation_id_or_member_epoch
    epochs = call.version >= FIRST_WITH_MEMBER_EPOCHS
    try:
        coordinator = call.node.group_coordinator.local(group_id)
        await coordinator.act(
            lambda machine, turn: machine.commit(group_id, who, generation, wanted, turn, knows_epochs=epochs)
        )
    except GroupNotFound as fault:
        raise fault if call.version >= FIRST_TO_KNOW_OF_GROUPS else IllegalGeneration(str(fault)) from None
