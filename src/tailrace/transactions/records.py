"""The records of `__transaction_state`, in Kafka's format, so that Kafka's tools can read them.

A key and a value each begin with their version, two bytes; the declared fields follow. A record without a value is a
tombstone: it deletes the transactional id. Values are written in version 1 (`cluster/features.py` says at which
metadata.version), which supports transactions v2, and read in both versions.

`last_epoch` is a field of Tailrace, in a tag that other readers skip. Kafka's coordinators keep that epoch in memory
only, so a producer that missed an answer is fenced after a failover there, and not here.
"""

from typing import Final, NamedTuple

from tailrace.cluster.features import record_version
from tailrace.records.record import NewRecord, Record
from tailrace.transactions.states import STATES_BY_NUMBER
from tailrace.wire.compile import decode, encode
from tailrace.wire.primitives import WireError
from tailrace.wire.schema import Int8, Int16, Int32, Int64, record, wire
from tailrace.wire.schema import struct as part
from tailrace.wire.stored import NUMBER, UnknownRecord, check_version, leading_number

KEY_VERSION: Final = 0


@record(type=0, versions="0-0", flexible="none")
class TransactionLogKey:
    """Names a transactional id."""

    transactional_id: str


@part
class StoredPartitions:
    """Partitions of one topic."""

    topic: str
    partition_ids: tuple[Int32, ...]


@record(type=0, versions="0-1", flexible="1+")
class TransactionLogValue:
    """The state of a transactional id."""

    producer_id: Int64
    previous_producer_id: Int64 = wire(since=1, tag=0, default=-1)
    next_producer_id: Int64 = wire(since=1, tag=1, default=-1)
    producer_epoch: Int16
    transaction_timeout_ms: Int32
    transaction_status: Int8
    transaction_partitions: tuple[StoredPartitions, ...] | None = wire(nullable="0+")
    transaction_last_update_timestamp_ms: Int64
    transaction_start_timestamp_ms: Int64
    client_transaction_version: Int16 = wire(since=1, tag=2, default=0)
    last_epoch: Int16 = wire(since=1, tag=10_000, default=-1)


class Entry(NamedTuple):
    """One record; without a value it is a tombstone."""

    key: TransactionLogKey
    value: TransactionLogValue | None


def encode_entry(entry: Entry, level: int, timestamp_ms: int) -> NewRecord:
    """The record of an entry at a level of metadata.version."""
    version = record_version(level, TransactionLogValue.__name__)
    key = NUMBER.pack(KEY_VERSION) + encode(entry.key, KEY_VERSION)
    value = None if entry.value is None else NUMBER.pack(version) + encode(entry.value, version)
    return NewRecord(key=key, value=value, timestamp=timestamp_ms)


def decode_entry(stored: Record) -> Entry:
    version = leading_number(stored.key or b"")
    if version != KEY_VERSION:
        raise UnknownRecord("key", version, f"version {KEY_VERSION}")
    key, _ = decode(TransactionLogKey, version, stored.key or b"", NUMBER.size)
    if stored.value is None:
        return Entry(key, None)
    value_version = leading_number(stored.value)
    check_version(TransactionLogValue, TransactionLogValue.__name__, value_version)
    value, _ = decode(TransactionLogValue, value_version, stored.value, NUMBER.size)
    if value.transaction_status not in STATES_BY_NUMBER:
        raise WireError(f"record at offset {stored.offset} has unknown state {value.transaction_status}")
    return Entry(key, value)
