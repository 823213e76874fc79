"""DescribeTransactions: the state of transactions that this broker coordinates. Each is answered on its own."""

from functools import partial

from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.handlers.transactions.transactional_ids import coordinator_of
from tailrace.doors.kafka.request_limits import each, once
from tailrace.model.faults import Fault
from tailrace.transactions.transaction import Transaction
from tailrace.transactions.transactions import Transactions
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
        return await coordinator_of(call, transactional_id).ask(lambda machine: _shown(machine, transactional_id))
    except Fault as fault:
        return DescribedTransaction(transactional_id=transactional_id, error_code=error_of(fault))


def _shown(machine: Transactions, transactional_id: str) -> DescribedTransaction:
    transaction = machine.find(transactional_id)
    return DescribedTransaction(
        transactional_id=transactional_id,
        transaction_state=transaction.state.value,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_start_time_ms=transaction.started_ms,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.epoch,
        topics=_topics(machine, transaction),
    )


def _topics(machine: Transactions, transaction: Transaction) -> tuple[TransactionTopic, ...]:
    """Its partitions; while it is being ended, those that have no marker yet."""
    unmarked = machine.unmarked.get(transaction.transactional_id)
    topics: dict[str, list[int]] = {}
    for place in transaction.places if unmarked is None else unmarked.places:
        topics.setdefault(place.topic, []).append(place.partition)
    return tuple(TransactionTopic(topic=name, partitions=tuple(numbers)) for name, numbers in topics.items())
