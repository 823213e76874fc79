"""AddPartitionsToTxn: partitions that a transaction will write to, all of them or none.

From version 4 on, which brokers use, it may ask about several transactions, and whether partitions take part already.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.handlers.transactions.transactional_ids import coordinator_of, error_for
from tailrace.doors.kafka.request_limits import require_few
from tailrace.model.faults import Fault, NotInTransaction
from tailrace.model.ids import PartitionName
from tailrace.model.topics import INTERNAL_TOPICS
from tailrace.transactions.transaction import Producer
from tailrace.transactions.transactions import NO_LINK
from tailrace.wire.errors import Error
from tailrace.wire.messages.add_partitions_to_txn import (
    AddedPartition,
    AddedTopic,
    AddedTransaction,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    TopicToAdd,
    TransactionToAdd,
)

FIRST_OF_BROKERS: Final = 4
CLIENT_VERSION: Final = 1  # of transactions: clients of v2 add nothing themselves


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


async def _answered(call: Call, wanted: TransactionToAdd) -> tuple[AddedTopic, ...]:
    places = [PartitionName(topic.name, number) for topic in wanted.topics for number in topic.partitions]
    try:
        codes = await _codes(call, wanted, places)
    except Fault as fault:
        codes = dict.fromkeys(places, error_for(fault, call, fenced_since=2, abortable_since=5))
    return tuple(_topic(topic, codes) for topic in wanted.topics)


def _topic(topic: TopicToAdd, codes: Mapping[PartitionName, Error]) -> AddedTopic:
    return AddedTopic(
        name=topic.name,
        partitions=tuple(
            AddedPartition(partition=number, error_code=codes.get(PartitionName(topic.name, number), Error.NONE))
            for number in topic.partitions
        ),
    )


async def _codes(
    call: Call, wanted: TransactionToAdd, places: Sequence[PartitionName]
) -> Mapping[PartitionName, Error]:
    """What is wrong with any of them."""
    coordinator = coordinator_of(call, wanted.transactional_id)
    name, who = wanted.transactional_id, Producer(wanted.producer_id, wanted.producer_epoch)
    if wanted.verify_only:
        missing = await coordinator.ask(lambda machine: machine.missing(name, who, places))
        none = error_for(NotInTransaction(""), call, fenced_since=2, abortable_since=5)
        return dict.fromkeys(missing, none)
    refused = {place: code for place in places if (code := _refusal(call, place)) != Error.NONE}
    if refused:
        return dict.fromkeys(places, Error.OPERATION_NOT_ATTEMPTED) | refused
    link = call.connection.number if call.version < FIRST_OF_BROKERS else NO_LINK
    await coordinator.when_free(
        name,
        lambda: coordinator.act(lambda machine, turn: machine.add(name, who, places, CLIENT_VERSION, turn, link)),
    )
    return {}


def _refusal(call: Call, place: PartitionName) -> Error:
    """Whether a client may write there; offsets have a request of their own."""
    if place.topic in INTERNAL_TOPICS:
        return Error.TOPIC_AUTHORIZATION_FAILED
    topic = call.node.hosted.image.topics.get(place.topic)
    is_there = topic is not None and 0 <= place.partition < len(topic.partitions)
    return Error.NONE if is_there else Error.UNKNOWN_TOPIC_OR_PARTITION
