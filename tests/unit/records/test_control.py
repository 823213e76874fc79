"""Control batches say what Kafka's do; ours are read back, others mean nothing, garbled ones are refused."""

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as some
from kio.schema.voters_record.v0.data import VotersRecord
from kio.serial import entity_reader

from tailrace.model.faults import CorruptBatch
from tailrace.model.ids import Id
from tailrace.records.build import build_batch, leader_change_batch, marker_batch, voters_batch
from tailrace.records.control import LeaderChange, Marker, VotersChange, read_control
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


def test_a_voters_record_is_kafkas() -> None:
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


def test_a_leader_change_is_told_apart() -> None:
    batch = leader_change_batch(leader=2, voters=(2,), granting=(2,), base_offset=0, leader_epoch=1, timestamp=0)
    assert read_control(batch) == LeaderChange(leader=2)


@pytest.mark.parametrize("committed", [True, False])
def test_a_marker_is_kafkas(committed: bool) -> None:
    batch = marker_batch(committed=committed, producer_id=7, producer_epoch=2, coordinator_epoch=5, timestamp=77)
    header = check_batch(memoryview(batch))
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 2, -1)
    assert header.is_control
    assert header.is_transactional
    assert open_batch(batch)[0].key == bytes.fromhex("0000 0001" if committed else "0000 0000")  # COMMIT, ABORT
    assert value_of(batch) == bytes.fromhex("0000 00000005")
    assert read_control(batch) == Marker(committed=committed, coordinator_epoch=5)


def test_what_another_kafka_writes_is_understood() -> None:
    """With endpoints, and with tagged fields that we do not know."""
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
        (bytes.fromhex("0001 0006"), b"\0\0garbled"),  # another version of keys
        (bytes.fromhex("0000 0006"), b"\0\1garbled"),  # another version of values
        (bytes.fromhex("0000 0006"), None),
    ],
)
def test_what_we_do_not_know_means_nothing(key: bytes | None, value: bytes | None) -> None:
    assert read_control(control(key, value)) is None


def test_a_batch_of_records_is_no_control_batch() -> None:
    assert read_control(build_batch([NewRecord(key=bytes.fromhex("0000 0006"), value=b"\0\0", timestamp=1)])) is None


def test_voters_cut_short_or_followed_by_more_are_corrupt() -> None:
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
def test_whatever_stands_there_is_read_or_corrupt(value: bytes) -> None:
    for kind in (2, 6):
        try:
            read_control(control(bytes((0, 0, 0, kind)), b"\0\0" + value))
        except CorruptBatch:
            continue


def test_bytes_that_were_changed_are_corrupt() -> None:
    batch = voters_batch(voters=[(1, HERE)], base_offset=0, leader_epoch=0, timestamp=0)
    batch[-10] ^= 1
    with pytest.raises(CorruptBatch, match="checksum"):
        read_control(batch)
