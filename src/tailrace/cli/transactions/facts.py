"""What there is to know about transactions, asked of the brokers that coordinate them."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, TypedDict

from tailrace.cli.client.direct_requests import Asked, asking_any, asking_one, brokers, name_of
from tailrace.cli.failure import Failed, NotThere
from tailrace.wire.errors import Error
from tailrace.wire.messages.describe_transactions import DescribedTransaction, DescribeTransactionsRequest
from tailrace.wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest
from tailrace.wire.messages.init_producer_id import InitProducerIdRequest
from tailrace.wire.messages.list_transactions import ListTransactionsRequest

TRANSACTIONS_KEY: Final = 1
PATIENCE_S: Final = 30.0
AGAIN_S: Final = 0.1
FOR_A_MOMENT: Final = (
    Error.COORDINATOR_NOT_AVAILABLE,
    Error.COORDINATOR_LOAD_IN_PROGRESS,
    Error.NOT_COORDINATOR,
    Error.CONCURRENT_TRANSACTIONS,
)


class ListedFacts(TypedDict):
    transaction: str
    state: str
    producer_id: int


class TransactionFacts(TypedDict):
    transaction: str
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    open_ms: int | None  # None: none is open
    partitions: list[str]  # topic-number
    coordinator: int


def listed(bootstrap: str, states: list[str]) -> list[ListedFacts]:
    """Every broker knows those that it coordinates."""
    found: list[ListedFacts] = []
    with asking_any(bootstrap) as asked:
        everybody = brokers(asked)
    for host, port in everybody:
        with asking_one(host, port) as broker:
            answer = broker(ListTransactionsRequest(state_filters=tuple(states), producer_id_filters=()))
        if answer.error_code:
            raise Failed(f"{host}:{port} did not say which transactions it has: {name_of(answer.error_code)}.")
        if answer.unknown_state_filters:
            raise Failed(f"there is no state {answer.unknown_state_filters[0]}; Ongoing and CompleteCommit are two.")
        found += [
            ListedFacts(transaction=one.transactional_id, state=one.transaction_state, producer_id=one.producer_id)
            for one in answer.transaction_states
        ]
    return sorted(found, key=lambda one: one["transaction"])


def facts_of(bootstrap: str, name: str) -> TransactionFacts:
    with _coordinator(bootstrap, name) as (broker, asked):
        one = _described(asked, name)
    is_open = one.transaction_start_time_ms > 0 and not one.transaction_state.startswith(("Complete", "Empty"))
    return TransactionFacts(
        transaction=name,
        state=one.transaction_state,
        producer_id=one.producer_id,
        producer_epoch=one.producer_epoch,
        timeout_ms=one.transaction_timeout_ms,
        open_ms=max(0, int(time.time() * 1000) - one.transaction_start_time_ms) if is_open else None,
        partitions=[f"{topic.topic}-{number}" for topic in one.topics for number in topic.partitions],
        coordinator=broker.node_id,
    )


def abort(bootstrap: str, name: str) -> str:
    """Take a transaction from its producer, as Kafka's `fenceProducers` does; the state it was in."""
    deadline = time.monotonic() + PATIENCE_S
    with _coordinator(bootstrap, name) as (_, asked):
        before = _described(asked, name)
        request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=before.transaction_timeout_ms)
        while (code := asked(request).error_code) and code in FOR_A_MOMENT and time.monotonic() < deadline:
            time.sleep(AGAIN_S)
    if code:
        raise Failed(f"cannot abort {name}: {name_of(code)}.")
    return before.transaction_state


def _described(asked: Asked, name: str) -> DescribedTransaction:
    one: DescribedTransaction
    (one,) = asked(DescribeTransactionsRequest(transactional_ids=(name,))).transaction_states
    if one.error_code == Error.TRANSACTIONAL_ID_NOT_FOUND:
        raise NotThere(f"there is no transactional id {name}.\n`tailrace transaction list` shows what is there.")
    if one.error_code:
        raise Failed(f"cannot describe {name}: {name_of(one.error_code)}.")
    return one


@contextmanager
def _coordinator(bootstrap: str, name: str) -> Iterator[tuple[Coordinator, Asked]]:
    deadline = time.monotonic() + PATIENCE_S
    with asking_any(bootstrap) as asked:
        while True:
            (found,) = asked(FindCoordinatorRequest(key_type=TRANSACTIONS_KEY, coordinator_keys=(name,))).coordinators
            if found.error_code not in FOR_A_MOMENT or time.monotonic() > deadline:
                break
            time.sleep(AGAIN_S)
    if found.error_code:
        raise Failed(f"nobody coordinates {name}: {found.error_message or name_of(found.error_code)}.")
    with asking_one(found.host, found.port) as coordinator:
        yield found, coordinator
