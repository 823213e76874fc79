"""Declarations and the bytes they encode to."""

from collections.abc import Callable
from typing import Any

import pytest

from tailrace.model.ids import NO_ID, Id
from tailrace.wire.compile import decode_whole, encode, encode_into
from tailrace.wire.messages.metadata import MetadataRequest, TopicWanted
from tailrace.wire.messages.produce import PartitionToProduce, ProduceRequest, TopicToProduce
from tailrace.wire.primitives import WireError
from tailrace.wire.schema import (
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Records,
    Uint16,
    Uint32,
    message,
    struct,
    wire,
)


@struct
class Inner:
    number: Int8 = -1
    late: Int16 = wire(since=2, default=7)


@message(api=999, versions="0-3", flexible="1+")
class Everything:
    small: Uint16
    large: Uint32
    real: Float64
    yes: bool
    id: Id
    raw: bytes
    maybe_raw: bytes | None = wire(nullable="1+")
    inner: Inner
    maybe_inner: Inner | None = wire(nullable="0+")
    ids: tuple[Id, ...]
    texts: tuple[str, ...]
    flags: tuple[bool, ...]
    rows: tuple[tuple[Int32, ...], ...]
    gone: Int64 = wire(until=1, default=0)
    whim: str = wire(since=3, default="", ignorable=True)
    tagged_text: str | None = wire(tag=5, since=1, nullable="1+", default="none")
    tagged_inner: Inner = wire(tag=1, since=1, default=Inner())


def everything(**changes: Any) -> Everything:
    values: dict[str, Any] = {
        "small": 65535,
        "large": 2**32 - 1,
        "real": -0.5,
        "yes": True,
        "id": Id(bytes(range(16))),
        "raw": b"raw",
        "maybe_raw": b"",
        "inner": Inner(number=3),
        "maybe_inner": None,
        "ids": (NO_ID,),
        "texts": ("", "ü"),
        "flags": (True, False),
        "rows": ((1, 2), ()),
    }
    return Everything(**values | changes)


@pytest.mark.parametrize(
    "value",
    [
        everything(),
        everything(maybe_inner=Inner()),
        everything(ids=(), texts=(), flags=(), rows=()),
    ],
)
@pytest.mark.parametrize("version", range(4))
def test_encoded_values_decode_to_themselves(value: Everything, version: int) -> None:
    assert decode_whole(Everything, version, encode(value, version)) == value


def test_bytes_of_a_classic_version() -> None:
    assert encode(everything(), 0) == bytes.fromhex(
        "ffff ffffffff bfe0000000000000 01 000102030405060708090a0b0c0d0e0f"  # up to the id
        "00000003 726177 00000000 03 ff"  # raw, maybe_raw, inner, maybe_inner
        "00000001 00000000000000000000000000000000"  # ids
        "00000002 0000 0002c3bc 00000002 0100"  # texts, flags
        "00000002 00000002 00000001 00000002 00000000"  # rows
        "0000000000000000"  # gone
    )


def test_bytes_of_a_flexible_version() -> None:
    value = everything(maybe_raw=None, maybe_inner=Inner(late=1), tagged_text=None, tagged_inner=Inner(number=9))
    assert encode(value, 2) == bytes.fromhex(
        "ffff ffffffff bfe0000000000000 01 000102030405060708090a0b0c0d0e0f"
        "04 726177 00 03 0007 00 01 ff 0001 00"  # raw, maybe_raw, inner with its tags, maybe_inner
        "02 00000000000000000000000000000000"
        "03 01 03c3bc 03 0100"
        "03 03 00000001 00000002 01"
        "02 01 04 09 0007 00 05 01 00"  # two tags in order: 1 of four bytes, 5 of one
    )


def test_a_tagged_default_is_not_sent() -> None:
    assert encode(everything(), 1).endswith(b"\0")
    assert decode_whole(Everything, 1, encode(everything(), 1)).tagged_text == "none"


def test_a_value_of_a_field_that_the_version_lacks_is_rejected() -> None:
    with pytest.raises(WireError, match=r"Everything\.gone is not part of version 2, so it cannot be 5"):
        encode(everything(gone=5), 2)
    with pytest.raises(WireError, match=r"Inner\.late is not part of version 1"):
        encode(everything(inner=Inner(late=8)), 1)
    with pytest.raises(WireError, match=r"Everything\.tagged_inner is not part of version 0"):
        encode(everything(tagged_inner=Inner(number=0)), 0)


def test_an_ignorable_value_is_left_out_by_versions_that_lack_it() -> None:
    assert encode(everything(whim="x"), 2) == encode(everything(), 2)
    assert decode_whole(Everything, 3, encode(everything(whim="x"), 3)).whim == "x"


def test_null_is_rejected_by_versions_in_which_the_field_is_not_nullable() -> None:
    with pytest.raises(WireError, match=r"Everything\.maybe_raw in version 0 cannot be null"):
        encode(everything(maybe_raw=None), 0)
    with pytest.raises(WireError, match=r"TopicWanted\.name in version 9 cannot be null"):
        encode(MetadataRequest(topics=(TopicWanted(name=None),)), 9)


@pytest.mark.parametrize(("version", "null"), [(0, b"\xff\xff\xff\xff"), (0, b"\xff\xff\xff\xfe"), (1, b"\0")])
def test_null_bytes_are_refused_where_they_are_not_allowed(version: int, null: bytes) -> None:
    before, raw, after = encode(everything(), version).partition(b"\0\0\0\3raw" if version == 0 else b"\4raw")
    assert raw
    with pytest.raises(WireError, match=r"Everything\.raw cannot be null"):
        decode_whole(Everything, version, before + null + after)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"small": 65536}, "65535"),
        ({"id": b"short"}, "5 bytes, an id must have 16"),
        ({"texts": ("x" * 32768,)}, "at most 32767"),
        ({"texts": ("\ud800",)}, "surrogates"),
    ],
)
@pytest.mark.parametrize("version", [0, 1])
def test_values_that_do_not_fit_are_refused(changes: dict[str, Any], why: str, version: int) -> None:
    with pytest.raises(WireError, match=why):
        encode(everything(**changes), version)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_is_read_and_only_records_are_views_of_it(kind: Callable[[bytes], Any]) -> None:
    batch = b"a batch"
    topic = TopicToProduce(name="t", partitions=(PartitionToProduce(partition=0, records=batch),))
    data = encode(ProduceRequest(acks=1, timeout_ms=1, topics=(topic,)), 9)
    buffer = kind(data)
    records = decode_whole(ProduceRequest, 9, buffer).topics[0].partitions[0].records
    assert isinstance(records, memoryview)
    assert records == batch
    assert records.obj is (buffer.obj if kind is memoryview else buffer)
    assert type(decode_whole(Everything, 1, kind(encode(everything(), 1))).raw) is bytes


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_records_are_written_from_any_buffer(kind: Callable[[bytes], Records]) -> None:
    topic = TopicToProduce(name="t", partitions=(PartitionToProduce(partition=0, records=kind(b"xyz")),))
    assert b"xyz" in encode(ProduceRequest(acks=1, timeout_ms=1, topics=(topic,)), 9)


def test_encode_into_appends() -> None:
    out = bytearray(b"head")
    encode_into(out, MetadataRequest(topics=None), 1)
    assert out == b"head\xff\xff\xff\xff"
