"""The records of `__consumer_offsets`, byte by byte as Kafka writes them: its tools read ours, and we read theirs."""

import pytest

from tailrace.groups.records import (
    Entry,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    StoredMember,
    decode_entry,
    encode_entry,
)
from tailrace.model.ids import Id
from tailrace.records.record import Record
from tailrace.wire.primitives import WireError

OFFSET_KEY = b"\0\1" + b"\0\1g" + b"\0\5topic" + b"\0\0\0\2"
OFFSET_VALUE = b"\0\3" + bytes(7) + b"\7" + b"\0\0\0\4" + b"\0\4note" + bytes(6) + b"\x01\x00"
GROUP_KEY = b"\0\2" + b"\0\1g"
GROUP_VALUE = (
    b"\0\3"
    + b"\0\x08consumer"
    + b"\0\0\0\3"
    + b"\0\5range"
    + b"\0\2m1"
    + bytes(7)
    + b"\5"
    + b"\0\0\0\1"
    + b"\0\2m1"
    + b"\0\1i"
    + b"\0\1c"
    + b"\0\2/h"
    + b"\0\0\0\x09"
    + b"\0\0\0\x08"
    + b"\0\0\0\1s"
    + b"\0\0\0\1a"
)
committed = OffsetCommitValue(offset=7, leader_epoch=4, metadata="note", commit_timestamp=256)
member = StoredMember(
    member_id="m1",
    group_instance_id="i",
    client_id="c",
    client_host="/h",
    rebalance_timeout=9,
    session_timeout=8,
    subscription=b"s",
    assignment=b"a",
)
generation = GroupMetadataValue(
    protocol_type="consumer",
    generation=3,
    protocol="range",
    leader="m1",
    current_state_timestamp=5,
    members=(member,),
)
offset = OffsetCommitKey(group="g", topic="topic", partition=2)


@pytest.mark.parametrize(
    ("entry", "key", "value"),
    [
        (Entry(offset, committed), OFFSET_KEY, OFFSET_VALUE),
        (Entry(offset, None), OFFSET_KEY, None),
        (Entry(GroupMetadataKey(group="g"), generation), GROUP_KEY, GROUP_VALUE),
        (Entry(GroupMetadataKey(group="g"), None), GROUP_KEY, None),
    ],
)
def test_bytes_and_back(entry: Entry, key: bytes, value: bytes | None) -> None:
    written = encode_entry(entry, 1, 99)
    assert (written.key, written.value, written.timestamp) == (key, value, 99)
    assert decode_entry(Record(0, 99, key, value)) == entry


def test_an_offset_with_an_expiry_time_is_written_in_version_1_which_alone_has_it() -> None:
    expires = OffsetCommitValue(offset=7, metadata="", commit_timestamp=1, expire_timestamp=2)
    written = encode_entry(Entry(offset, expires), 1, 0)
    assert written.value == b"\0\1" + bytes(7) + b"\7" + b"\0\0" + bytes(7) + b"\1" + bytes(7) + b"\2"
    assert decode_entry(Record(0, 0, written.key, written.value)).value == expires


def test_older_and_newer_versions_are_read() -> None:
    oldest = b"\0\0" + bytes(7) + b"\7" + b"\0\0" + bytes(7) + b"\1"
    assert decode_entry(Record(0, 0, b"\0\0" + OFFSET_KEY[2:], oldest)).value == OffsetCommitValue(
        offset=7, metadata="", commit_timestamp=1
    )
    newest = b"\0\4" + bytes(7) + b"\7" + b"\0\0\0\4" + b"\1" + bytes(7) + b"\1" + b"\1\0\x10" + b"t" * 16
    assert decode_entry(Record(0, 0, OFFSET_KEY, newest)).value == OffsetCommitValue(
        offset=7, leader_epoch=4, metadata="", commit_timestamp=1, topic_id=Id(b"t" * 16)
    )


@pytest.mark.parametrize(("key", "value"), [(b"", b""), (b"\0", b""), (b"\0\x63g", b""), (OFFSET_KEY, b"\0\x09")])
def test_unknown_types_and_versions_are_refused(key: bytes, value: bytes) -> None:
    with pytest.raises(WireError):
        decode_entry(Record(5, 0, key, value))
