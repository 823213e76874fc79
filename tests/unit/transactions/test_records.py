"""The records of `__transaction_state`, byte by byte as Kafka writes them: its tools read ours, and we read theirs."""

import pytest

from tailrace.model.ids import PartitionName
from tailrace.records.record import Record
from tailrace.transactions.records import (
    Entry,
    StoredPartitions,
    TransactionLogKey,
    TransactionLogValue,
    decode_entry,
    encode_entry,
)
from tailrace.transactions.states import STATUS_NUMBERS, State
from tailrace.transactions.transaction import Transaction, entry, transaction_of
from tailrace.wire.primitives import WireError

KEY = b"\0\0" + b"\0\1x"
TAIL = bytes(6) + b"\x01\x00" + bytes(6) + b"\x02\x00"  # the times of the last update and of the start
VALUE_0 = (
    b"\0\0" + bytes(6) + b"\x03\xe8" + b"\0\5" + b"\0\0\xea\x60" + b"\1" + b"\0\0\0\1" + b"\0\1t" + b"\0\0\0\1\0\0\0\2"
) + TAIL
VALUE_1 = (
    b"\0\1" + bytes(6) + b"\x03\xe8" + b"\0\5" + b"\0\0\xea\x60" + b"\1" + b"\2" + b"\2t" + b"\2\0\0\0\2" + b"\0" + TAIL
)
TAGS = b"\3" + b"\0\x08" + bytes(7) + b"\7" + b"\1\x08" + bytes(7) + b"\x09" + b"\2\2\0\2"
unknown_state = VALUE_0.replace(b"\x60\1", b"\x60\x08")
PARTITIONS = (StoredPartitions(topic="t", partition_ids=(2,)),)
plain = TransactionLogValue(
    producer_id=1000,
    producer_epoch=5,
    transaction_timeout_ms=60_000,
    transaction_status=1,
    transaction_partitions=PARTITIONS,
    transaction_last_update_timestamp_ms=256,
    transaction_start_timestamp_ms=512,
)
name = TransactionLogKey(transactional_id="x")


def test_bytes_and_back() -> None:
    written = encode_entry(Entry(name, plain), 1, 99)
    assert (written.key, written.value, written.timestamp) == (KEY, VALUE_1 + b"\0", 99)
    assert decode_entry(Record(0, 99, KEY, VALUE_1 + b"\0")) == Entry(name, plain)
    assert encode_entry(Entry(name, None), 1, 99).value is None
    assert decode_entry(Record(0, 99, KEY, None)) == Entry(name, None)


def test_values_that_kafka_writes_are_decoded() -> None:
    assert decode_entry(Record(0, 0, KEY, VALUE_0)).value == plain
    read = decode_entry(Record(0, 0, KEY, VALUE_1 + TAGS)).value
    assert read is not None
    assert (read.previous_producer_id, read.next_producer_id, read.client_transaction_version) == (7, 9, 2)


def test_last_epoch_is_a_tagged_field_that_other_readers_skip() -> None:
    written = encode_entry(entry(Transaction(transactional_id="x", timeout_ms=1, last_epoch=4)), 1, 0).value
    assert written is not None
    assert written.endswith(b"\1" + b"\x90\x4e" + b"\2" + b"\0\4")


def test_a_transaction_is_restored_from_its_record() -> None:
    one = Transaction(
        transactional_id="x",
        producer_id=1,
        epoch=2,
        last_epoch=1,
        previous_producer_id=3,
        next_producer_id=4,
        timeout_ms=5,
        state=State.PREPARE_ABORT,
        places=(PartitionName("t", 1), PartitionName("t", 0), PartitionName("u", 7)),
        started_ms=6,
        updated_ms=7,
        client_version=2,
    )
    stored = decode_entry(Record(0, 0, encode_entry(entry(one), 1, 0).key, encode_entry(entry(one), 1, 0).value))
    assert stored.value is not None
    assert transaction_of(stored.key, stored.value) == one


def test_states_have_kafkas_numbers() -> None:
    assert [state.value for state in sorted(STATUS_NUMBERS, key=lambda one: STATUS_NUMBERS[one])] == [
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    ]


@pytest.mark.parametrize(
    ("key", "value"), [(b"", b""), (b"\0", b""), (b"\0\x63x", b""), (KEY, b"\0\x09"), (KEY, unknown_state)]
)
def test_unknown_versions_and_states_are_refused(key: bytes, value: bytes) -> None:
    with pytest.raises(WireError):
        decode_entry(Record(5, 0, key, value))
