"""The records of `__share_group_state`, byte by byte as Kafka writes them: its tools read ours, and we read theirs."""

from dataclasses import replace

import pytest

from tailrace.cluster.features import Locked
from tailrace.model.ids import Id
from tailrace.queues.records import (
    Entry,
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareStateKey,
    ShareStateValue,
    ShareUpdateKey,
    ShareUpdateValue,
    StateBatch,
    decode_entry,
    encode_entry,
)
from tailrace.records.record import Record
from tailrace.wire.compile import decode_whole, encode
from tailrace.wire.primitives import WireError
from tailrace.wire.schema import declaration
from tailrace.wire.stored import UnknownRecord

TOPIC = b"T" * 16
KEY_BYTES = b"\0\1g" + TOPIC + b"\0\0\0\3"
OFFSETS = bytes(7) + b"\5" + bytes(7) + b"\7"
COUNT_TAG = b"\1\0\4" + b"\0\0\0\3"  # one tagged field, number 0, its size and value

snapshot = ShareSnapshotValue(
    snapshot_epoch=2,
    state_epoch=7,
    leader_epoch=4,
    start_offset=5,
    create_timestamp=256,
    write_timestamp=512,
    state_batches=(StateBatch(first_offset=5, last_offset=7, delivery_state=2, delivery_count=1),),
)
TIMES = bytes(6) + b"\1\0" + bytes(6) + b"\2\0"
SNAPSHOT_HEAD = b"\0\0\0\2" + b"\0\0\0\7" + b"\0\0\0\4" + bytes(7) + b"\5" + TIMES
SNAPSHOT_BYTES = SNAPSHOT_HEAD + b"\2" + OFFSETS + b"\2" + b"\0\1" + b"\0"
update = ShareUpdateValue(
    snapshot_epoch=2,
    leader_epoch=4,
    start_offset=-1,
    state_batches=(StateBatch(first_offset=5, last_offset=7, delivery_state=4, delivery_count=5),),
)
UPDATE_HEAD = b"\0\0\0\2" + b"\0\0\0\4" + b"\xff" * 8
UPDATE_BYTES = UPDATE_HEAD + b"\2" + OFFSETS + b"\4" + b"\0\5" + b"\0"


@pytest.mark.parametrize(
    ("key", "key_type"),
    [
        (ShareSnapshotKey(group="g", topic_id=Id(TOPIC), partition=3), 0),
        (ShareUpdateKey(group="g", topic_id=Id(TOPIC), partition=3), 1),
    ],
)
def test_bytes_of_keys_and_back(key: ShareStateKey, key_type: int) -> None:
    key_class: type[ShareStateKey] = type(key)
    assert declaration(key_class).number == key_type
    assert encode(key, key_type) == KEY_BYTES
    assert decode_whole(key_class, key_type, KEY_BYTES) == key


@pytest.mark.parametrize(
    ("value", "key_type", "value_bytes"),
    [
        (snapshot, 0, SNAPSHOT_BYTES + b"\0"),
        (replace(snapshot, delivery_complete_count=3), 0, SNAPSHOT_BYTES + COUNT_TAG),
        (update, 1, UPDATE_BYTES + b"\0"),
        (replace(update, delivery_complete_count=3), 1, UPDATE_BYTES + COUNT_TAG),
    ],
)
def test_bytes_of_values_and_back(value: ShareStateValue, key_type: int, value_bytes: bytes) -> None:
    value_class: type[ShareStateValue] = type(value)
    assert declaration(value_class).number == key_type
    assert encode(value, 0) == value_bytes
    assert decode_whole(value_class, 0, value_bytes) == value


def test_not_before_is_a_tagged_field_that_other_readers_skip() -> None:
    batch = StateBatch(first_offset=5, last_offset=7, delivery_state=0, delivery_count=1, not_before=256)
    value = replace(update, state_batches=(batch,))
    data = encode(value, 0)
    tag = b"\1" + b"\x90\x4e" + b"\x08" + bytes(6) + b"\1\0"
    assert data == UPDATE_HEAD + b"\2" + OFFSETS + b"\0" + b"\0\1" + tag + b"\0"
    assert decode_whole(ShareUpdateValue, 0, data) == value


def stored(key: bytes | None, value: bytes | None) -> Record:
    return Record(offset=9, timestamp=1, key=key, value=value, headers=())


@pytest.mark.parametrize(
    ("entry", "key", "value"),
    [
        (
            Entry(ShareSnapshotKey(group="g", topic_id=Id(TOPIC), partition=3), snapshot),
            b"\0\0",
            SNAPSHOT_BYTES + b"\0",
        ),
        (Entry(ShareUpdateKey(group="g", topic_id=Id(TOPIC), partition=3), update), b"\0\1", UPDATE_BYTES + b"\0"),
        (Entry(ShareSnapshotKey(group="g", topic_id=Id(TOPIC), partition=3), None), b"\0\0", None),
    ],
)
def test_whole_records_and_back(entry: Entry, key: bytes, value: bytes | None) -> None:
    written = encode_entry(entry, 3, 1)
    assert written.key == key + KEY_BYTES
    assert written.value == (None if value is None else b"\0\0" + value)
    assert decode_entry(stored(written.key, written.value)) == entry


def test_below_level_3_none_is_written() -> None:
    with pytest.raises(Locked):
        encode_entry(Entry(ShareSnapshotKey(group="g", topic_id=Id(TOPIC), partition=3), snapshot), 2, 1)


@pytest.mark.parametrize(
    ("key", "value", "error"),
    [
        (b"\0\2" + KEY_BYTES, b"\0\0", UnknownRecord),
        (b"\0\2" + KEY_BYTES, None, UnknownRecord),
        (b"\0\0" + KEY_BYTES, b"\0\1" + SNAPSHOT_BYTES + b"\0", UnknownRecord),
        (b"\0", b"\0\0", WireError),
        (None, None, WireError),
        (b"\0\0" + KEY_BYTES, b"\0\0" + SNAPSHOT_BYTES.replace(OFFSETS + b"\2", OFFSETS + b"\5") + b"\0", WireError),
    ],
)
def test_other_records_are_refused(key: bytes | None, value: bytes | None, error: type[Exception]) -> None:
    with pytest.raises(error):
        decode_entry(stored(key, value))
