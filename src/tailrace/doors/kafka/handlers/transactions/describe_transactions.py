"""DescribeTransactions: the state of transactions that this broker coordinates. Each has its own result."""

from collections.abc import Sequence
from functools import partial

from tailrace.broker.services.transactions import PartitionName
from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.request_limits import each, once
from tailrace.model.faults import Fault
from tailrace.wire.faults import error_of
from tailrace.wire.messages.describe_transactions import (
    DescribedTransaction,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionTopic,
)


async def describe_transactions(request: DescribeTransactionsRequest, call: Call) -> DescribeTransactionsResponse:
    described = await each(once(request.transactional_ids), partial(_described, call))
    return DescribeTransactionsResponse(transaction_states=tuple(described))


async def _described(call: Call, transactional_id: str) -> DescribedTransaction:
    try:
        view = await call.services.transactions.describe(call.caller, transactional_id)
    except Fault as fault:
        return DescribedTransaction(transactional_id=transactional_id, error_code=error_of(fault))
    transaction = view.transaction
    return DescribedTransaction(
        transactional_id=transactional_id,
        transaction_state=transaction.state.value,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_start_time_ms=transaction.started_ms,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.epoch,
        topics=_topics(view.places),
    )


def _topics(places: Sequence[PartitionName]) -> tuple[TransactionTopic, ...]:
    topics: dict[str, list[int]] = {}
    for place in places:
        topics.setdefault(place.topic, []).append(place.partition)
    return tuple(TransactionTopic(topic=name, partitions=tuple(numbers)) for name, numbers in topics.items())
