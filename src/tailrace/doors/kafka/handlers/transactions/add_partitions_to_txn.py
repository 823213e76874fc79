"""AddPartitionsToTxn: add the partitions that a transaction will write to, all of them or none.

Versions from 4 on are for brokers: a request may hold several transactions, and with verify_only it only checks whether
partitions are part of the transaction (KIP-890).
"""

from collections.abc import Sequence
from typing import Final

from tailrace.broker.services.transactions import NO_CONNECTION, PartitionName, Producer
from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.handlers.transactions.older_errors import error_for
from tailrace.doors.kafka.request_limits import require_few
from tailrace.model.faults import Fault
from tailrace.wire.errors import Error
from tailrace.wire.messages.add_partitions_to_txn import (
    AddedTransaction,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    TransactionToAdd,
)
from tailrace.wire.messages.results import PartitionResult, TopicResults

FIRST_OF_BROKERS: Final = 4


async def add_partitions_to_txn(request: AddPartitionsToTxnRequest, call: Call) -> AddPartitionsToTxnResponse:
    transactions = request.transactions if call.version >= FIRST_OF_BROKERS else (request,)
    require_few(sum(len(topic.partitions) for one in transactions for topic in one.topics))
    if call.version >= FIRST_OF_BROKERS:
        done = [
            AddedTransaction(transactional_id=one.transactional_id, topics=await _answered(call, one))
            for one in request.transactions
        ]
        return AddPartitionsToTxnResponse(transactions=tuple(done))
    wanted = TransactionToAdd(
        transactional_id=request.transactional_id,
        producer_id=request.producer_id,
        producer_epoch=request.producer_epoch,
        topics=request.topics,
    )
    return AddPartitionsToTxnResponse(topics=await _answered(call, wanted))


async def _answered(call: Call, wanted: TransactionToAdd) -> tuple[TopicResults, ...]:
    places = [PartitionName(topic.name, number) for topic in wanted.topics for number in topic.partitions]
    try:
        faults = await _faults(call, wanted, places)
    except Fault as fault:
        faults = [fault] * len(places)
    codes = iter(
        Error.NONE if fault is None else error_for(fault, call, fenced_since=2, abortable_since=5) for fault in faults
    )
    return tuple(
        TopicResults(
            name=topic.name,
            partitions=tuple(PartitionResult(partition=number, error_code=next(codes)) for number in topic.partitions),
        )
        for topic in wanted.topics
    )


async def _faults(call: Call, wanted: TransactionToAdd, places: Sequence[PartitionName]) -> Sequence[Fault | None]:
    transactions, producer = call.services.transactions, Producer(wanted.producer_id, wanted.producer_epoch)
    if wanted.verify_only:
        return await transactions.verify_partitions(call.caller, wanted.transactional_id, producer, places)
    connection_number = call.client.connection_number if call.version < FIRST_OF_BROKERS else NO_CONNECTION
    return await transactions.add_partitions(call.caller, wanted.transactional_id, producer, places, connection_number)
