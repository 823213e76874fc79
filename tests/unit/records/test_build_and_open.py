"""Built batches can be read back; batches that break a rule of the format are refused with a reason."""

import struct

import pytest
from crc32c import crc32c

from tailrace.model.faults import CorruptBatch, InvalidBatch, UnsupportedFormat
from tailrace.records.build import build_batch
from tailrace.records.compress import COMPRESSIONS, Compression
from tailrace.records.header import CHECKED_FROM, CRC_AT, LAYOUT, check_batch, read_header, stamp_append_time
from tailrace.records.opened import batches, open_batch, walk_batch
from tailrace.records.record import NewRecord, Record
from tailrace.records.varints import varint

THREE = (
    NewRecord(b"one", b"k", (("trace", b"\x01"), ("trace", None)), timestamp=1_700_000_000_500),
    NewRecord(None, b"", timestamp=1_700_000_000_000),
    NewRecord(b"", None, (("é", b""),), timestamp=1_700_000_000_900),
)


def sealed(body: bytes, records: int = 1, last_delta: int | None = None, attributes: int = 0) -> bytes:
    """A batch of this body with the right checksum."""
    last = records - 1 if last_delta is None else last_delta
    batch = bytearray(LAYOUT.pack(100, 49 + len(body), 3, 2, 0, attributes, last, 1000, 1000, -1, -1, -1, records))
    batch += body
    struct.pack_into(">I", batch, CRC_AT, crc32c(bytes(batch[CHECKED_FROM:])))
    return bytes(batch)


def record(*fields: bytes | int, size: int | None = None) -> bytes:
    """An encoded record with these fields after its attributes: integers as varints, bytes as they are."""
    raw = b"\0" + b"".join(varint(field) if isinstance(field, int) else field for field in fields)
    return varint(len(raw) if size is None else size) + raw


plain = record(0, 0, -1, 1, b"v", 0)


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_built_batch_can_be_read(compression: Compression) -> None:
    batch = build_batch(THREE, base_offset=42, leader_epoch=7, compression=compression)
    assert open_batch(batch) == [
        Record(42 + delta, new.timestamp, new.key, new.value, new.headers) for delta, new in enumerate(THREE)
    ]


def test_the_header_describes_the_records() -> None:
    batch = build_batch(
        THREE,
        base_offset=42,
        leader_epoch=7,
        compression="zstd",
        producer_id=9000,
        producer_epoch=2,
        base_sequence=2**31 - 2,
        transactional=True,
    )
    header = check_batch(memoryview(batch))
    assert header.size == len(batch)
    assert (header.base_offset, header.last_offset, header.records, header.leader_epoch) == (42, 44, 3, 7)
    assert (header.base_timestamp, header.max_timestamp) == (1_700_000_000_500, 1_700_000_000_900)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (9000, 2, 2**31 - 2)
    assert header.last_sequence == 0  # wraps
    assert header.is_transactional
    assert not header.is_control
    assert COMPRESSIONS[header.compression] == "zstd"


def test_append_time_is_the_time_of_every_record() -> None:
    batch = build_batch(THREE)
    stamp_append_time(memoryview(batch), 1_800_000_000_000, read_header(batch).attributes)
    assert [one.timestamp for one in open_batch(batch)] == [1_800_000_000_000] * 3
    built_so = build_batch(THREE, timestamp_type="LogAppendTime")
    assert [one.timestamp for one in open_batch(built_so)] == [1_700_000_000_900] * 3


def test_header_names_that_are_not_utf8_survive() -> None:
    opened = open_batch(sealed(record(0, 0, -1, -1, 1, 2, b"\xff\xfe", -1)))
    assert opened[0].headers == (("\udcff\udcfe", None),)
    assert open_batch(build_batch(opened))[0].headers == opened[0].headers


def test_a_compacted_batch_keeps_its_gaps() -> None:
    body = record(0, 1, -1, -1, 0) + record(0, 4, -1, -1, 0)
    assert [one.offset for one in open_batch(sealed(body, records=2, last_delta=9))] == [101, 104]
    assert open_batch(sealed(b"", records=0, last_delta=9)) == []
    with pytest.raises(InvalidBatch):
        check_batch(memoryview(sealed(body, records=2, last_delta=9)))


def test_a_batch_needs_records() -> None:
    with pytest.raises(ValueError, match="at least one"):
        build_batch([])


@pytest.mark.parametrize(
    ("body", "records", "message"),
    [
        pytest.param(b"", 1, "do not fit", id="no record"),
        pytest.param(plain, 2, "do not fit", id="one of two"),
        pytest.param(plain + b"\0" * 7, 2, "record of 0 bytes", id="an empty record"),
        pytest.param(plain + b"x", 1, "after the last record", id="trailing"),
        pytest.param(plain + record(0, 1, -1, -1, 0), 1, "after the last record", id="one too many"),
        pytest.param(record(0, 0, -1, 1, b"v", 0, size=200), 1, "bytes left", id="record too long"),
        pytest.param(record(0, 0, -1, 1, b"v", 0, size=-3), 1, "record of -3", id="negative size"),
        pytest.param(record(0, 0, -1, 1, b"v", 0, size=6), 1, "ends", id="record too short"),
        pytest.param(record(0, 0, -1, 1, b"v", 0, b"pad"), 1, "ends", id="record with padding"),
        pytest.param(record(0, 0, 2**31 - 1, b"key", -1, 0), 1, "field of", id="key too long"),
        pytest.param(record(0, 0, -2, -1, 0), 1, "field of -2", id="negative key"),
        pytest.param(record(0, 0, -1, -1, 1_000_000), 1, "headers", id="too many headers"),
        pytest.param(record(0, 0, -1, -1, -1), 1, "-1 headers", id="negative headers"),
        pytest.param(record(0, 0, -1, -1, 1, -1, -1), 1, "without a name", id="nameless header"),
        pytest.param(record(0, 1, -1, -1, 0), 1, "offset delta 1", id="offset above the last"),
        pytest.param(record(0, -1, -1, -1, 0), 1, "offset delta -1", id="offset below the first"),
        pytest.param(plain + plain, 2, "offset delta 0 after 0", id="offset twice"),
        pytest.param(b"\xff" * 12, 1, "more than 64 bits", id="endless number"),
        pytest.param(b"\x80" * 9 + b"\x02" + b"\0" * 9, 1, "more than 64 bits", id="number of 65 bits"),
        pytest.param(record(0, 0, b"\xff\xff\xff\xff\xff\xff"), 1, "truncated", id="number at the end"),
    ],
)
def test_a_body_that_breaks_a_rule_is_refused(body: bytes, records: int, message: str) -> None:
    with pytest.raises(CorruptBatch, match=message):
        open_batch(sealed(body, records))


@pytest.mark.parametrize(("records", "last_delta"), [(-1, 0), (2**31 - 1, 2**31 - 1), (3, 1), (1, -1)])
def test_an_impossible_record_count_is_refused(records: int, last_delta: int) -> None:
    with pytest.raises(CorruptBatch):
        open_batch(sealed(plain, records, last_delta))


def test_unknown_attributes_are_refused() -> None:
    for attributes in (5, 7, 0x80, -0x8000):
        with pytest.raises(InvalidBatch, match="unknown attributes"):
            open_batch(sealed(plain, attributes=attributes))


@pytest.mark.parametrize(("magic", "fault"), [(0, UnsupportedFormat), (1, UnsupportedFormat), (3, CorruptBatch)])
def test_other_formats_are_refused_at_any_length(magic: int, fault: type[Exception]) -> None:
    old = struct.pack(">qiibI", 0, 22, 0, magic, 0) + bytes(13)
    for data in (old, old + bytes(100)):
        with pytest.raises(fault):
            check_batch(memoryview(data))
        with pytest.raises(fault):
            list(batches(data))


def test_records_are_read_one_by_one() -> None:
    walk = walk_batch(sealed(plain + record(0, 1, -1, -1, 0, size=99), records=2))
    assert next(walk).value == b"v"
    with pytest.raises(CorruptBatch):
        next(walk)


def test_consecutive_batches_are_found_and_an_incomplete_one_is_left_out() -> None:
    first, second = build_batch(THREE, base_offset=0), build_batch(THREE[:1], base_offset=3)
    run = bytes(first + second)
    for cut in range(len(run) + 1):
        whole = (cut >= len(first)) + (cut >= len(run))
        assert [header.base_offset for _, header in batches(run[:cut])] == [0, 3][:whole]
    assert [open_batch(data)[0].offset for data, _ in batches(run)] == [0, 3]


@pytest.mark.parametrize("length", [-1, 0, 48, -(2**31)])
def test_a_batch_with_an_impossible_size_is_corrupt(length: int) -> None:
    run = bytearray(build_batch(THREE))
    struct.pack_into(">i", run, 8, length)
    with pytest.raises(CorruptBatch, match="less than a header"):
        list(batches(run))
