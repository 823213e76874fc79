"""Control batches have Kafka's format and are read back; unknown ones are ignored, garbled ones are corrupt."""

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as some
from kio.schema.voters_record.v0.data import VotersRecord
from kio.serial import entity_reader

from tailrace.model.faults import CorruptBatch
from tailrace.model.ids import Id
from tailrace.records.build import build_batch
from tailrace.records.control import (
    LeaderChange,
    Marker,
    VotersChange,
    leader_change_batch,
    marker_batch,
    read_control,
    voters_batch,
)
from tailrace.records.header import check_batch
from tailrace.records.opened import open_batch
from tailrace.records.record import NewRecord

HERE, THERE = Id(b"h" * 16), Id(b"t" * 16)
voters = some.lists(
    some.tuples(some.integers(0, 2**31 - 1), some.binary(min_size=16, max_size=16).map(Id)), min_size=1, max_size=200
)


def control(key: bytes | None, value: bytes | None) -> bytearray:
    return build_batch([NewRecord(key=key, value=value, timestamp=1)], control=True)


def value_of(batch: bytearray) -> bytes:
    value = open_batch(batch)[0].value
    assert value is not None
    return value


@given(voters)
def test_voters_are_read_back(ids: list[tuple[int, Id]]) -> None:
    batch = voters_batch(voters=ids, base_offset=8, leader_epoch=5, timestamp=77)
    header = check_batch(memoryview(batch))
    assert (header.base_offset, header.leader_epoch, header.is_control) == (8, 5, True)
    assert read_control(batch) == VotersChange(voters=tuple(ids))


def test_a_voters_record_has_kafkas_format() -> None:
    batch = voters_batch(voters=[(1, HERE), (300, THERE)], base_offset=0, leader_epoch=0, timestamp=0)
    assert open_batch(batch)[0].key == bytes.fromhex("0000 0006")  # version 0, KRAFT_VOTERS
    raw = value_of(batch)
    theirs, size = entity_reader(VotersRecord)(raw, 0)
    assert size == len(raw)
    assert [(one.voter_id, one.voter_directory_id) for one in theirs.voters] == [
        (1, uuid.UUID(bytes=HERE)),
        (300, uuid.UUID(bytes=THERE)),
    ]
    assert all(one.endpoints == () for one in theirs.voters)
    feature = theirs.voters[0].k_raft_version_feature
    assert (feature.min_supported_version, feature.max_supported_version) == (0, 1)


def test_a_leader_change_has_kafkas_format() -> None:
    batch = leader_change_batch(
        leader=2, voters=(1, 2, 3), granting=(2, 3), base_offset=8, leader_epoch=5, timestamp=77
    )
    header = check_batch(memoryview(batch))
    assert header.is_control
    assert (header.base_offset, header.leader_epoch, header.producer_id) == (8, 5, -1)
    (opened,) = open_batch(batch)
    assert opened.key == bytes.fromhex("0000 0002")  # version 0, LEADER_CHANGE
    assert opened.value == bytes.fromhex(
        "0000 00000002"  # version, leader
        "04 00000001 00 00000002 00 00000003 00"  # three voters
        "03 00000002 00 00000003 00"  # two granting ones
        "00"  # no tagged fields
    )
    assert opened.timestamp == 77


def test_a_leader_change_is_read_back() -> None:
    batch = leader_change_batch(leader=2, voters=(2,), granting=(2,), base_offset=0, leader_epoch=1, timestamp=0)
    assert read_control(batch) == LeaderChange(leader=2)


@pytest.mark.parametrize("committed", [True, False])
def test_a_marker_has_kafkas_format(committed: bool) -> None:
    batch = marker_batch(committed=committed, producer_id=7, producer_epoch=2, coordinator_epoch=5, timestamp=77)
    header = check_batch(memoryview(batch))
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 2, -1)
    assert header.is_control
    assert header.is_transactional
    assert open_batch(batch)[0].key == bytes.fromhex("0000 0001" if committed else "0000 0000")  # COMMIT, ABORT
    assert value_of(batch) == bytes.fromhex("0000 00000005")
    assert read_control(batch) == Marker(committed=committed, coordinator_epoch=5)


def test_voters_with_endpoints_and_tagged_fields_are_read() -> None:
    """As Apache Kafka, or a later version of it, writes them."""
    endpoint = b"\3ab\5host" + b"\x23\x84" + b"\1\x07\1x"
    one = bytes.fromhex("00000007") + HERE + b"\2" + endpoint + bytes(4) + b"\0\0"
    value = b"\0\0\2" + one + b"\1\x05\2ab"
    assert read_control(control(bytes.fromhex("0000 0006"), value)) == VotersChange(voters=((7, HERE),))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"\0\0\1\0"),
        (b"", b"\0\0\1\0"),
        (bytes.fromhex("0000 0000"), b"garbled"),  # ABORT
        (bytes.fromhex("0000 0063"), b"\0\0garbled"),
        (bytes.fromhex("0001 0006"), b"\0\0garbled"),  # unknown key version
        (bytes.fromhex("0000 0006"), b"\0\1garbled"),  # unknown value version
        (bytes.fromhex("0000 0006"), None),
    ],
)
def test_unknown_control_records_are_ignored(key: bytes | None, value: bytes | None) -> None:
    assert read_control(control(key, value)) is None


def test_a_batch_without_the_control_bit_is_not_a_control_batch() -> None:
    assert read_control(build_batch([NewRecord(key=bytes.fromhex("0000 0006"), value=b"\0\0", timestamp=1)])) is None


def test_voters_that_are_truncated_or_followed_by_more_bytes_are_corrupt() -> None:
    key = bytes.fromhex("0000 0006")
    value = value_of(voters_batch(voters=[(1, HERE), (2, THERE)], base_offset=0, leader_epoch=0, timestamp=0))
    assert read_control(control(key, value)) is not None
    for end in range(2, len(value)):
        with pytest.raises(CorruptBatch):
            read_control(control(key, value[:end]))
    for wrong in (value + b"\0", b"\0\0\1\0", b"\0\0\0\0", b"\0\0\xff\xff\x7f" + bytes(40)):
        with pytest.raises(CorruptBatch):
            read_control(control(key, wrong))


@given(some.binary(max_size=80))
def test_any_value_is_read_or_corrupt(value: bytes) -> None:
    for kind in (2, 6):
        try:
            read_control(control(bytes((0, 0, 0, kind)), b"\0\0" + value))
        except CorruptBatch:
            continue


def test_a_changed_byte_is_corrupt() -> None:
    batch = voters_batch(voters=[(1, HERE)], base_offset=0, leader_epoch=0, timestamp=0)
    batch[-10] ^= 1
    with pytest.raises(CorruptBatch, match="checksum"):
        read_control(batch)
