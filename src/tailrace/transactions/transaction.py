"""A transactional id and its current transaction, as a frozen value.

Producer epochs fence. A producer that initialises the transactional id gets a higher epoch, and requests with a lower
one are refused. With transactions v2 (KIP-890) the epoch is also bumped at the end of each transaction, so that late
requests are recognised by their epoch; the markers of that end carry the new epoch, and partitions then refuse batches
with an older one. An epoch has 15 bits; before they are exhausted, the transactional id gets a new producer id.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from tailrace.model.frozen import frozen
from tailrace.model.ids import PartitionName
from tailrace.transactions.records import Entry, StoredPartitions, TransactionLogKey, TransactionLogValue
from tailrace.transactions.states import PREPARED, STATES_BY_NUMBER, STATUS_NUMBERS, State

NOTHING: Final = -1  # no producer id, no epoch, no time
LAST_EPOCH: Final = 2**15 - 2  # that a producer can have; the one after it only fences
TRANSACTIONS_V2: Final = 2  # the transaction version from which the epoch is bumped at each end


class Producer(NamedTuple):
    id: int
    epoch: int


@frozen
class Transaction:
    transactional_id: str
    producer_id: int = NOTHING  # nothing: no producer has initialised it
    epoch: int = NOTHING
    last_epoch: int = NOTHING  # the epoch before, of the same client; nothing: that was another client
    previous_producer_id: int = NOTHING
    next_producer_id: int = NOTHING  # replaces `producer_id` when the prepared end is complete
    timeout_ms: int
    state: State = State.EMPTY
    places: tuple[PartitionName, ...] = ()  # its partitions, without duplicates
    started_ms: int = NOTHING  # wall clock
    updated_ms: int = NOTHING
    client_version: int = 0  # the transaction version that its producer uses

    @property
    def producer(self) -> Producer:
        return Producer(self.producer_id, self.epoch)

    @property
    def is_prepared(self) -> bool:
        """Its outcome is decided, and markers are being sent."""
        return self.state in PREPARED

    @property
    def is_exhausted(self) -> bool:
        """The producer id has no more epochs."""
        return self.epoch >= LAST_EPOCH


def entry(transaction: Transaction) -> Entry:
    """The record of this state."""
    topics: dict[str, list[int]] = {}
    for place in transaction.places:
        topics.setdefault(place.topic, []).append(place.partition)
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=transaction.next_producer_id,
        producer_epoch=transaction.epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=STATUS_NUMBERS[transaction.state],
        transaction_partitions=_stored(topics),
        transaction_last_update_timestamp_ms=transaction.updated_ms,
        transaction_start_timestamp_ms=transaction.started_ms,
        client_transaction_version=transaction.client_version,
        last_epoch=transaction.last_epoch,
    )
    return Entry(TransactionLogKey(transactional_id=transaction.transactional_id), value)


def _stored(topics: Mapping[str, list[int]]) -> tuple[StoredPartitions, ...] | None:
    """As Kafka writes it: null if there are none."""
    return tuple(StoredPartitions(topic=one, partition_ids=tuple(ids)) for one, ids in topics.items()) or None


def transaction_of(key: TransactionLogKey, value: TransactionLogValue) -> Transaction:
    return Transaction(
        transactional_id=key.transactional_id,
        producer_id=value.producer_id,
        epoch=value.producer_epoch,
        last_epoch=value.last_epoch,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        timeout_ms=value.transaction_timeout_ms,
        state=STATES_BY_NUMBER[value.transaction_status],
        places=tuple(
            PartitionName(one.topic, number)
            for one in value.transaction_partitions or ()
            for number in one.partition_ids
        ),
        started_ms=value.transaction_start_timestamp_ms,
        updated_ms=value.transaction_last_update_timestamp_ms,
        client_version=value.client_transaction_version,
    )
