"""TxnOffsetCommit: commit offsets of a group as part of a transaction. Each partition has its own result.

From version 3 on the request names member and generation, so that a member that has lost its partitions is fenced.
From version 5 on the request adds the group's partition to the transaction itself (transactions v2, KIP-890).
"""

from typing import Final

from tailrace.broker.services.transactions import Producer, TransactionalCommit
from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.handlers.groups.offsets_to_commit import by_topic, find_topic, offsets_to_commit
from tailrace.groups.requests import MemberId
from tailrace.wire.faults import error_of
from tailrace.wire.messages.results import PartitionResult, TopicResults
from tailrace.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)

FIRST_WITH_ABORTABLE: Final = 4
FIRST_OF_V2: Final = 5


async def txn_offset_commit(request: TxnOffsetCommitRequest, call: Call) -> TxnOffsetCommitResponse:
    wanted = [(find_topic(call, one.name), one.partitions) for one in request.topics]
    commit = TransactionalCommit(
        transactional_id=request.transactional_id,
        producer=Producer(request.producer_id, request.producer_epoch),
        group_id=request.group_id,
        who=MemberId(request.member_id, request.group_instance_id),
        generation=request.generation_id,
        adds=call.version >= FIRST_OF_V2,
        knows_abortable=call.version >= FIRST_WITH_ABORTABLE,
    )
    faults = await call.services.transactions.commit_offsets(call.caller, commit, offsets_to_commit(wanted))
    codes = by_topic(wanted, [0 if fault is None else error_of(fault) for fault in faults])
    return TxnOffsetCommitResponse(
        topics=tuple(
            TopicResults(
                name=topic.name,
                partitions=tuple(PartitionResult(partition=number, error_code=code) for number, code in answers),
            )
            for topic, answers in zip(request.topics, codes, strict=True)
        )
    )
