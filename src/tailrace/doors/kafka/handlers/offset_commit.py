"""OffsetCommit: write down how far a group has read. Answered when that is committed; each partition on its own.

A group that nobody is in takes commits from anybody: so administrators reset it, and clients that assign partitions
themselves keep their place."""

from typing import Final

from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.offsets import placed
from tailrace.groups.offsets import Committed, Place
from tailrace.groups.requests import MemberId
from tailrace.model.faults import (
    Fault,
    GroupNotFound,
    IllegalGeneration,
    UnknownTopic,
    UnknownTopicId,
)
from tailrace.model.ids import show_id
from tailrace.wire.faults import error_of
from tailrace.wire.messages.offset_commit import (
    CommittedPartition,
    CommittedTopic,
    OffsetCommitRequest,
    OffsetCommitResponse,
    PartitionToCommit,
    TopicToCommit,
)

first_by_id: Final = 10
first_with_member_epochs: Final = 9
first_to_know_of_groups: Final = 9  # before, a group that is not there had another generation
as_the_broker_says: Final = -1
last_ms: Final = 2**63 - 1  # that can be written down


async def offset_commit(request: OffsetCommitRequest, call: Call) -> OffsetCommitResponse:
    placed = [[_placed(call, topic, one) for one in topic.partitions] for topic in request.topics]
    wanted = {
        place: _committed(request, call, one)
        for topic, places in zip(request.topics, placed, strict=True)
        for one, place in zip(topic.partitions, places, strict=True)
        if isinstance(place, Place)
    }
    fault = await _commit(request, call, wanted) if wanted else None
    return OffsetCommitResponse(
        topics=tuple(
            CommittedTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=tuple(
                    CommittedPartition(
                        partition=one.partition, error_code=_code(place if isinstance(place, Fault) else fault)
                    )
                    for one, place in zip(topic.partitions, places, strict=True)
                ),
            )
            for topic, places in zip(request.topics, placed, strict=True)
        )
    )


def _code(fault: Fault | None) -> int:
    return 0 if fault is None else error_of(fault)


def _placed(call: Call, topic: TopicToCommit, one: PartitionToCommit) -> Place | Fault:
    """Which partition is meant, or why nothing can be committed for it."""
    image = call.node.replicas.image
    by_id = call.version >= first_by_id
    found = image.topics_by_id.get(topic.topic_id) if by_id else image.topics.get(topic.name)
    if found is None:
        if by_id:
            return UnknownTopicId(f"there is no topic with id {show_id(topic.topic_id)}")
        return UnknownTopic(f"there is no topic {topic.name}")
    return placed(call, found, one.partition, one.committed_metadata or "")


def _committed(request: OffsetCommitRequest, call: Call, one: PartitionToCommit) -> Committed:
    now_ms = call.node.ports.clock.wall_ms()
    kept_ms = request.retention_time_ms
    return Committed(
        offset=one.committed_offset,
        leader_epoch=one.committed_leader_epoch,
        metadata=one.committed_metadata or "",
        committed_ms=now_ms,
        expires_ms=-1 if kept_ms == as_the_broker_says else min(max(0, now_ms + kept_ms), last_ms),
    )


async def _commit(request: OffsetCommitRequest, call: Call, wanted: dict[Place, Committed]) -> Fault | None:
    who = MemberId(request.member_id, request.group_instance_id)
    group_id, generation = request.group_id, request.generation_id_or_member_epoch
    epochs = call.version >= first_with_member_epochs
    try:
        seat = call.node.grouping.seat(group_id)
        await seat.act(
            lambda machine, turn: machine.commit(group_id, who, generation, wanted, turn, knows_epochs=epochs)
        )
    except GroupNotFound as fault:
        return fault if call.version >= first_to_know_of_groups else IllegalGeneration(str(fault))
    except Fault as fault:
        return fault
    return None
