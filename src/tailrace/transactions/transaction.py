"""A transactional id and the transaction that runs under it, as a value: each change makes another one.

Epochs fence. Whoever takes the name gets a higher epoch, and nobody with a lower one is listened to any more. A client
of transactions v2 gets a new one at each end, too, so that what is late is known by its epoch (KIP-890). The markers of
such an end carry the new epoch: partitions refuse what is older from then on. An epoch has 15 bits; before they run out
the name goes on under another producer id.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from tailrace.model.frozen import frozen
from tailrace.model.ids import PartitionName
from tailrace.transactions.records import Entry, StoredPartitions, TransactionLogKey, TransactionLogValue
from tailrace.transactions.states import PREPARED, STATES_BY_NUMBER, STATUS_NUMBERS, State

NOTHING: Final = -1  # no id, no epoch, no time
LAST_EPOCH_OF_AN_ID: Final = 2**15 - 2  # the one after it is for fencing only
FIRST_EPOCH_VERSION: Final = 2  # of transactions, that has a new epoch at each end


class Producer(NamedTuple):
    """Who writes, in which of its lives."""

    id: int
    epoch: int


@frozen
class Transaction:
    transactional_id: str
    producer_id: int = NOTHING  # nothing: nobody has come yet
    epoch: int = NOTHING
    last_epoch: int = NOTHING  # of the same client; nothing: another one has come since
    previous_producer_id: int = NOTHING
    next_producer_id: int = NOTHING  # which takes over when the end that is prepared is complete
    timeout_ms: int
    state: State = State.EMPTY
    places: tuple[PartitionName, ...] = ()  # no two are the same
    started_ms: int = NOTHING  # wall clock
    updated_ms: int = NOTHING
    client_version: int = 0  # of transactions, as its producer speaks

    @property
    def producer(self) -> Producer:
        return Producer(self.producer_id, self.epoch)

    @property
    def is_prepared(self) -> bool:
        """Whether its end is decided, and under way."""
        return self.state in PREPARED

    @property
    def is_exhausted(self) -> bool:
        return self.epoch >= LAST_EPOCH_OF_AN_ID


def entry(transaction: Transaction) -> Entry:
    """For the log."""
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
    """As Kafka writes it: no list where there are none."""
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
