"""Malformed bytes: each raises WireError, quickly and without large allocations."""

import random
import struct
import tracemalloc

import pytest

from tailrace.model.ids import NO_ID
from tailrace.model.limits import ARRAY_MAX_ELEMENTS, TAGGED_FIELDS_MAX
from tailrace.wire.compile import decode, decode_whole, encode
from tailrace.wire.messages import MESSAGES
from tailrace.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tailrace.wire.messages.fetch import FetchRequest, PartitionToFetch, TopicToFetch
from tailrace.wire.messages.metadata import MetadataRequest
from tailrace.wire.messages.produce import ProduceRequest
from tailrace.wire.primitives import WireError, uvarint
from tests.unit.wire.samples import every_message, name_of, sample


@pytest.mark.parametrize(("cls", "version"), every_message, ids=name_of)
def test_every_truncated_message_is_rejected(cls: type, version: int) -> None:
    data = encode(sample(cls, version, 0), version)
    for size in range(len(data)):
        with pytest.raises(WireError):
            decode(cls, version, data[:size])


@pytest.mark.parametrize(("cls", "version"), every_message, ids=name_of)
def test_damaged_messages_decode_or_raise_wire_error(cls: type, version: int) -> None:
    chance = random.Random(f"{cls.__name__} {version}")
    for seed in range(3):
        data = encode(sample(cls, version, seed), version)
        for _ in range(40 if data else 0):
            broken = bytearray(data)
            for _ in range(chance.choice([1, 1, 2, 8])):
                broken[chance.randrange(len(broken))] = chance.choice([0, 127, 128, 255, chance.randrange(256)])
            try:
                decode_whole(cls, version, broken)
            except WireError:
                continue


@pytest.mark.parametrize(("cls", "version"), every_message, ids=name_of)
def test_trailing_bytes_are_rejected(cls: type, version: int) -> None:
    data = encode(sample(cls, version, 1), version)
    assert decode(cls, version, data + b"\0")[1] == len(data)
    with pytest.raises(WireError, match="1 trailing bytes"):
        decode_whole(cls, version, data + b"\0")


def refused(cls: type, version: int, data: bytes, why: str) -> None:
    """Assert that decoding fails for this reason, without allocating the declared size."""
    with pytest.raises(WireError):
        decode(cls, version, data)  # compile the codec first: that allocates, too
    tracemalloc.start()
    try:
        with pytest.raises(WireError, match=why):
            decode(cls, version, data)
        assert tracemalloc.get_traced_memory()[1] < 200_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("count", [2, 1000, 2**31 - 1])
def test_a_count_above_the_bytes_left_is_refused(count: int) -> None:
    refused(MetadataRequest, 1, struct.pack(">i", count) + b"\0\0", "elements")
    refused(MetadataRequest, 9, uvarint(count + 1) + b"\0\0", "elements")


def test_a_count_above_the_bound_is_refused_though_the_bytes_are_there() -> None:
    count = ARRAY_MAX_ELEMENTS + 1
    refused(MetadataRequest, 1, struct.pack(">i", count) + bytes(2 * count), f"at most {ARRAY_MAX_ELEMENTS}")
    refused(MetadataRequest, 9, uvarint(count + 1) + bytes(2 * count), f"at most {ARRAY_MAX_ELEMENTS}")


def test_elements_are_counted_by_the_bytes_they_need() -> None:
    """Ten API ranges take sixty bytes: with fifty-nine, decoding fails before the first element."""
    body = struct.pack(">hi", 0, 10) + bytes(59)
    refused(ApiVersionsResponse, 0, body, "10 elements of at least 6 bytes, 59 are left")


@pytest.mark.parametrize("size", [10, 32767])
def test_a_text_longer_than_the_bytes_left_is_refused(size: int) -> None:
    refused(MetadataRequest, 0, struct.pack(">ih", 1, size) + b"abc", "3 are left")
    refused(ApiVersionsRequest, 3, uvarint(size + 1) + b"abc", "3 are left")


def test_a_text_above_the_bound_is_refused_though_the_bytes_are_there() -> None:
    refused(ApiVersionsRequest, 3, uvarint(32769) + bytes(40000), "at most 32767")


def test_records_longer_than_the_bytes_left_are_refused() -> None:
    head = struct.pack(">hhiihii", -1, 1, 1000, 1, 0, 1, 0)
    refused(ProduceRequest, 3, head + struct.pack(">i", 2**31 - 1) + b"abc", "3 are left")


def test_null_is_refused_where_it_is_not_allowed() -> None:
    refused(MetadataRequest, 0, struct.pack(">i", -1), "cannot be null")
    refused(MetadataRequest, 0, struct.pack(">ih", 1, -1), "cannot be null")
    refused(ApiVersionsRequest, 3, b"\0\0\0", "cannot be null")


def test_text_that_is_not_utf8_is_refused() -> None:
    refused(MetadataRequest, 0, struct.pack(">ih", 1, 2) + b"\xff\xfe", "not UTF-8")


@pytest.mark.parametrize(
    ("varint", "why"),
    [
        (b"\xff\xff\xff\xff\x1f", "more than 32 bits"),
        (b"\x80\x80\x80\x80\x80\x00", "more than 5 bytes"),
        (b"\x80\x80", "is truncated"),
    ],
)
def test_a_varint_has_32_bits_in_5_bytes(varint: bytes, why: str) -> None:
    refused(ApiVersionsRequest, 3, varint, why)


def test_more_tags_than_the_bound_are_refused() -> None:
    tag = uvarint(7) + uvarint(0)
    count = TAGGED_FIELDS_MAX + 1
    refused(ApiVersionsRequest, 3, b"\1\1" + uvarint(count) + tag * count, f"at most {TAGGED_FIELDS_MAX} ")
    answer = struct.pack(">hBi", 0, 1, 0)
    refused(ApiVersionsResponse, 3, answer + uvarint(count) + tag * count, f"at most {TAGGED_FIELDS_MAX} ")


def test_a_tag_longer_than_the_bytes_left_is_refused() -> None:
    refused(ApiVersionsRequest, 3, b"\1\1\1" + uvarint(99) + uvarint(2**31) + b"abc", "3 are left")


def test_a_known_tag_has_exactly_its_bytes() -> None:
    answer = struct.pack(">hBi", 0, 1, 0)
    refused(ApiVersionsResponse, 3, answer + b"\1\1\x09" + bytes(9), "tagged field 1 .* does not fill the 9 bytes")
    refused(ApiVersionsResponse, 3, answer + b"\1\1\x07" + bytes(9), "tagged field 1 .* does not fill the 7 bytes")


def test_a_length_inside_a_tag_cannot_reach_beyond_it() -> None:
    """The cluster id declares four bytes, its tagged field has two left; bytes after the tagged field do not count."""
    value = FetchRequest(max_wait_ms=0, min_bytes=0, topics=())
    data = encode(value, 12)
    assert data.endswith(b"\0")
    refused(FetchRequest, 12, data[:-1] + b"\1\0\3\5abcdef", "declares 4 bytes, 2 are left")


def test_unknown_tags_are_skipped_at_every_level() -> None:
    partition = PartitionToFetch(partition=3, fetch_offset=4, partition_max_bytes=5)
    topic = TopicToFetch(topic_id=NO_ID, partitions=(partition,))
    value = FetchRequest(max_wait_ms=0, min_bytes=1, topics=(topic,))
    data = encode(value, 17)
    unknown = b"\1" + uvarint(300) + uvarint(5) + b"later"
    assert data.endswith(
        b"\0\0\1\1\0"
    )  # tags of partition and topic, no forgotten topics, no rack, tags of the request
    assert decode_whole(FetchRequest, 17, data[:-5] + unknown * 2 + b"\1\1" + unknown) == value


def test_a_version_that_does_not_exist_is_refused() -> None:
    for pair in MESSAGES.values():
        for cls in (pair.request, pair.response):
            for version in (pair.versions.first - 1, pair.versions.last + 1):
                with pytest.raises(WireError, match=f"no version {version}"):
                    decode(cls, version, b"")
