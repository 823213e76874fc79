"""Transactions as their coordinators describe them, and the abort of a transaction."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, TypedDict

from tailrace.cli.client.client_config import Access
from tailrace.cli.client.direct_requests import BrokerConnection, brokers, connect_any, connect_to, error_name
from tailrace.cli.failure import Failed, NotFound
from tailrace.wire.errors import Error
from tailrace.wire.messages.describe_transactions import DescribedTransaction, DescribeTransactionsRequest
from tailrace.wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest
from tailrace.wire.messages.init_producer_id import InitProducerIdRequest
from tailrace.wire.messages.list_transactions import ListTransactionsRequest

TRANSACTIONS_KEY: Final = 1
COORDINATOR_TIMEOUT_S: Final = 30.0
RETRY_S: Final = 0.1
TEMPORARY_ERRORS: Final = (
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
    open_ms: int | None  # None: no transaction is open
    partitions: list[str]  # each as "topic-partition"
    coordinator: int


def listed(access: Access, states: list[str]) -> list[ListedFacts]:
    """The transactional ids of all brokers: each broker lists those that it coordinates."""
    found: list[ListedFacts] = []
    with connect_any(access) as connection:
        addresses = brokers(connection)
    for host, port in addresses:
        with connect_to(access, host, port) as broker:
            response = broker(ListTransactionsRequest(state_filters=tuple(states), producer_id_filters=()))
        if response.error_code:
            raise Failed(f"cannot list the transactions of {host}:{port}: {error_name(response.error_code)}.")
        if response.unknown_state_filters:
            raise Failed(
                f"--state {response.unknown_state_filters[0]}: there is no such state; try Ongoing or CompleteCommit."
            )
        found += [
            ListedFacts(transaction=one.transactional_id, state=one.transaction_state, producer_id=one.producer_id)
            for one in response.transaction_states
        ]
    return sorted(found, key=lambda one: one["transaction"])


def facts_of(access: Access, name: str) -> TransactionFacts:
    with _coordinator(access, name) as (broker, connection):
        one = _described(connection, name)
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


def abort(access: Access, name: str) -> str:
    """Fence the producer by InitProducerId, as Kafka's `fenceProducers` does; return the state before."""
    deadline = time.monotonic() + COORDINATOR_TIMEOUT_S
    with _coordinator(access, name) as (_, connection):
        before = _described(connection, name)
        request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=before.transaction_timeout_ms)
        while (code := connection(request).error_code) and code in TEMPORARY_ERRORS and time.monotonic() < deadline:
            time.sleep(RETRY_S)
    if code:
        raise Failed(f"cannot abort {name}: {error_name(code)}.")
    return before.transaction_state


def _described(connection: BrokerConnection, name: str) -> DescribedTransaction:
    one: DescribedTransaction
    (one,) = connection(DescribeTransactionsRequest(transactional_ids=(name,))).transaction_states
    if one.error_code == Error.TRANSACTIONAL_ID_NOT_FOUND:
        raise NotFound(
            f"there is no transactional id {name}.\n`tailrace transaction list` lists the transactional ids."
        )
    if one.error_code:
        raise Failed(f"cannot describe {name}: {error_name(one.error_code)}.")
    return one


@contextmanager
def _coordinator(access: Access, name: str) -> Iterator[tuple[Coordinator, BrokerConnection]]:
    """The coordinator of a transactional id, and a connection to it."""
    deadline = time.monotonic() + COORDINATOR_TIMEOUT_S
    request = FindCoordinatorRequest(key_type=TRANSACTIONS_KEY, coordinator_keys=(name,))
    with connect_any(access) as connection:
        while True:
            (found,) = connection(request).coordinators
            if found.error_code not in TEMPORARY_ERRORS or time.monotonic() > deadline:
                break
            time.sleep(RETRY_S)
    if found.error_code:
        raise Failed(f"cannot find the coordinator of {name}: {found.error_message or error_name(found.error_code)}.")
    with connect_to(access, found.host, found.port) as coordinator:
        yield found, coordinator
