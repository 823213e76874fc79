"""TxnOffsetCommit: how far a group has read, for when the transaction is committed. Each partition on its own.

From version 3 on the member of the group says who it is, so that one which has lost its partitions commits nothing.
From version 5 on the group's partition joins the transaction by itself (KIP-890)."""

from typing import Final

from tailrace.broker.committing import TransactionalCommit, commit
from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.offsets import placed
from tailrace.groups.offsets import Committed, Place
from tailrace.groups.requests import MemberId
from tailrace.model.faults import Fault, UnknownTopic
from tailrace.transactions.transaction import Producer
from tailrace.wire.faults import error_of
from tailrace.wire.messages.txn_offset_commit import (
    TxnCommittedPartition,
    TxnCommittedTopic,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnPartitionToCommit,
    TxnTopicToCommit,
)

first_of_v2: Final = 5


async def txn_offset_commit(request: TxnOffsetCommitRequest, call: Call) -> TxnOffsetCommitResponse:
    places = [[_placed(call, topic, one) for one in topic.partitions] for topic in request.topics]
    wanted = {
        place: _committed(call, one)
        for topic, found in zip(request.topics, places, strict=True)
        for one, place in zip(topic.partitions, found, strict=True)
        if isinstance(place, Place)
    }
    fault = await _commit(request, call, wanted) if wanted else None
    return TxnOffsetCommitResponse(
        topics=tuple(
            TxnCommittedTopic(
                name=topic.name,
                partitions=tuple(
                    TxnCommittedPartition(
                        partition=one.partition, error_code=_code(place if isinstance(place, Fault) else fault)
                    )
                    for one, place in zip(topic.partitions, found, strict=True)
                ),
            )
            for topic, found in zip(request.topics, places, strict=True)
        )
    )


def _code(fault: Fault | None) -> int:
    return 0 if fault is None else error_of(fault)


def _placed(call: Call, topic: TxnTopicToCommit, one: TxnPartitionToCommit) -> Place | Fault:
    found = call.node.replicas.image.topics.get(topic.name)
    if found is None:
        return UnknownTopic(f"there is no topic {topic.name}")
    return placed(call, found, one.partition, one.committed_metadata or "")


def _committed(call: Call, one: TxnPartitionToCommit) -> Committed:
    return Committed(
        offset=one.committed_offset,
        leader_epoch=one.committed_leader_epoch,
        metadata=one.committed_metadata or "",
        committed_ms=call.node.ports.clock.wall_ms(),
    )


async def _commit(request: TxnOffsetCommitRequest, call: Call, wanted: dict[Place, Committed]) -> Fault | None:
    one = TransactionalCommit(
        transactional_id=request.transactional_id,
        producer=Producer(request.producer_id, request.producer_epoch),
        group_id=request.group_id,
        who=MemberId(request.member_id, request.group_instance_id),
        generation=request.generation_id,
        offsets=wanted,
        adds=call.version >= first_of_v2,
    )
    try:
        await commit(call.node, one)
    except Fault as fault:
        return fault
    return None
