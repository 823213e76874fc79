"""TxnOffsetCommit: how far a group has read, for when the transaction is committed. Each partition on its own.

From version 3 on the member of the group says who it is, so that one which has lost its partitions commits nothing.
From version 5 on the group's partition joins the transaction by itself (KIP-890)."""

from collections.abc import Mapping
from functools import partial
from typing import Final

from tailrace.broker.transactions.offset_commits import TransactionalCommit, commit
from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.handlers.groups.offsets_to_commit import by_name, commit_each
from tailrace.groups.offsets import Committed
from tailrace.groups.requests import MemberId
from tailrace.model.faults import InvalidGroupId
from tailrace.model.ids import PartitionName
from tailrace.transactions.transaction import Producer
from tailrace.wire.messages.txn_offset_commit import (
    TxnCommittedPartition,
    TxnCommittedTopic,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)

FIRST_WITH_ABORTABLE: Final = 4
FIRST_OF_V2: Final = 5


async def txn_offset_commit(request: TxnOffsetCommitRequest, call: Call) -> TxnOffsetCommitResponse:
    wanted = [(by_name(call, one.name), one.partitions) for one in request.topics]
    codes = await commit_each(call, wanted, partial(_commit, request, call))
    return TxnOffsetCommitResponse(
        topics=tuple(
            TxnCommittedTopic(
                name=topic.name,
                partitions=tuple(TxnCommittedPartition(partition=number, error_code=code) for number, code in answers),
            )
            for topic, answers in zip(request.topics, codes, strict=True)
        )
    )


async def _commit(request: TxnOffsetCommitRequest, call: Call, wanted: Mapping[PartitionName, Committed]) -> None:
    if not request.group_id:
        raise InvalidGroupId("a transaction commits offsets of a group with a name")
    one = TransactionalCommit(
        transactional_id=request.transactional_id,
        producer=Producer(request.producer_id, request.producer_epoch),
        group_id=request.group_id,
        who=MemberId(request.member_id, request.group_instance_id),
        generation=request.generation_id,
        offsets=wanted,
        adds=call.version >= FIRST_OF_V2,
        says_abortable=call.version >= FIRST_WITH_ABORTABLE,
    )
    await commit(call.node, one)
