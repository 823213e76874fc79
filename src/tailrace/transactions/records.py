"""The records of `__transaction_state`, in Kafka's own form: other people's tools read them.

A key begins with its version, as does a value, both two bytes; the rest is as declared. A record without value forgets
what the key names. Values are written in version 1 (`cluster.features` says at which level), which knows of
transactions v2, and read in both.

`last_epoch` is our own, in a tag that others skip: Kafka's coordinators forget it, and a producer whose answer was lost
with its coordinator is fenced there.
"""

import struct
from typing import Final, NamedTuple

from tailrace.cluster.features import record_version
from tailrace.records.record import NewRecord, Record
from tailrace.transactions.states import STATES_BY_NUMBER
from tailrace.wire.compile import decode, encode
from tailrace.wire.primitives import WireError
from tailrace.wire.schema import Int8, Int16, Int32, Int64, record, wire
from tailrace.wire.schema import struct as part
from tailrace.wire.stored import UnknownRecord, check_version

NUMBER: Final = struct.Struct(">h")
KEY_VERSION: Final = 0


@record(type=0, versions="0-0", flexible="none")
class TransactionLogKey:
    """A transactional id."""

    transactional_id: str


@part
class StoredPartitions:
    """Partitions of one topic."""

    topic: str
    partition_ids: tuple[Int32, ...]


@record(type=0, versions="0-1", flexible="1+")
class TransactionLogValue:
    """What its coordinator has to know."""

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
    """One record; without value, the transactional id is forgotten."""

    key: TransactionLogKey
    value: TransactionLogValue | None


def encode_entry(entry: Entry, level: int, timestamp_ms: int) -> NewRecord:
    """An entry as it is written at a level of metadata.version."""
    version = record_version(level, TransactionLogValue.__name__)
    key = NUMBER.pack(KEY_VERSION) + encode(entry.key, KEY_VERSION)
    value = None if entry.value is None else NUMBER.pack(version) + encode(entry.value, version)
    return NewRecord(key=key, value=value, timestamp=timestamp_ms)


def decode_entry(stored: Record) -> Entry:
    version = _number(stored.key or b"")
    if version != KEY_VERSION:
        raise UnknownRecord("key", version, f"version {KEY_VERSION}")
    key, _ = decode(TransactionLogKey, version, stored.key or b"", NUMBER.size)
    if stored.value is None:
        return Entry(key, None)
    value_version = _number(stored.value)
    check_version(TransactionLogValue, TransactionLogValue.__name__, value_version)
    value, _ = decode(TransactionLogValue, value_version, stored.value, NUMBER.size)
    if value.transaction_status not in STATES_BY_NUMBER:
        raise WireError(f"the record at offset {stored.offset} has state {value.transaction_status}: there is none")
    return Entry(key, value)


def _number(data: bytes) -> int:
    if len(data) < NUMBER.size:
        raise WireError(f"a record of {len(data)} bytes ends before its version")
    found: int = NUMBER.unpack_from(data)[0]
    return found
