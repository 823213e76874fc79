"""Records of internal partitions: framed, versioned, and an error when unknown."""

import pytest

from tailrace.wire.primitives import WireError
from tailrace.wire.schema import Int32, record, wire
from tailrace.wire.stored import UnknownRecord, decode_record, encode_record, record_types


@record(type=3, versions="0-1")
class Moved:
    """A record with two versions and a tagged field."""

    name: str
    place: Int32
    speed: Int32 = wire(since=1, default=0)
    note: str | None = wire(tag=0, nullable="0+", default=None)


@record(type=300, versions="0")
class Stopped:
    """A record whose type number takes two bytes."""

    name: str


types = record_types(Moved, Stopped)
moved = Moved(name="a", place=7, speed=2, note="n")


def test_bytes_of_a_framed_record() -> None:
    assert encode_record(moved, 1) == b"\1\3\1" + b"\2a" + b"\0\0\0\7" + b"\0\0\0\2" + b"\1\0\2\2n"
    assert encode_record(Stopped(name=""), 0) == b"\1\xac\2\0" + b"\1" + b"\0"


def test_a_record_is_decoded_by_its_type() -> None:
    assert decode_record(types, encode_record(moved, 1)) == moved
    assert decode_record(types, memoryview(encode_record(Stopped(name="b"), 0))) == Stopped(name="b")


def test_an_old_version_is_written_on_request_and_read_with_defaults() -> None:
    data = encode_record(Moved(name="a", place=7), version=0)
    assert data[2] == 0
    assert decode_record(types, data) == Moved(name="a", place=7, speed=0)
    with pytest.raises(WireError, match=r"Moved\.speed is not part of version 0"):
        encode_record(moved, version=0)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\1\4\1abc", "record type 4, version 1; known are types 3 to 300"),
        (b"\1\3\2abc", r"record type 3 \(Moved\), version 2; known are versions 0-1"),
        (b"\2\3\1abc", "record frame, version 2; known are version 1"),
    ],
)
def test_a_kind_or_version_that_is_not_known_is_named(data: bytes, why: str) -> None:
    with pytest.raises(UnknownRecord, match=why):
        decode_record(types, data)


def test_bytes_that_follow_a_record_are_no_later_release() -> None:
    with pytest.raises(WireError, match="1 trailing bytes") as refused:
        decode_record(types, encode_record(moved, 1) + b"x")
    assert not isinstance(refused.value, UnknownRecord)


def test_no_prefix_is_a_record() -> None:
    data = encode_record(moved, 1)
    for size in range(len(data)):
        with pytest.raises(WireError):
            decode_record(types, data[:size])


def test_two_classes_cannot_share_a_type() -> None:
    with pytest.raises(TypeError, match="both have record type 3"):
        record_types(Moved, Moved)
