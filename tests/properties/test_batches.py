"""Record batches under random values and random damage."""

import struct

from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.model.faults import BatchTooLarge, CorruptBatch, Fault, InvalidBatch, UnsupportedFormat
from tailrace.records.build import build_batch
from tailrace.records.compress import Compression, decompress
from tailrace.records.header import CHECKED_FROM, CRC_AT, EPOCH_AT, read_header
from tailrace.records.opened import batches, decompressed, open_batch, walk_heads
from tailrace.records.record import NewRecord, Record
from tailrace.records.varints import read_varint, varint
from tests.properties.record_strategies import codecs, several

REFUSALS = (CorruptBatch, InvalidBatch, UnsupportedFormat)


@given(st.integers(-(2**63), 2**63 - 1), st.binary(max_size=3))
def test_numbers_come_back(value: int, before: bytes) -> None:
    raw = varint(value)
    assert len(raw) <= 10
    assert read_varint(before + raw + b"\xff", len(before)) == (value, len(before) + len(raw))


@given(several, codecs, st.integers(0, 2**62), st.integers(-1, 2**31 - 1))
def test_what_is_built_is_what_is_opened(new: list[NewRecord], codec: Compression, base: int, epoch: int) -> None:
    batch = build_batch(new, base_offset=base, leader_epoch=epoch, compression=codec)
    assert open_batch(batch) == [
        Record(base + delta, one.timestamp, one.key, one.value, one.headers) for delta, one in enumerate(new)
    ]
    heads = walk_heads(*decompressed(batch, len(batch) + 10_000))
    assert list(heads) == [(one.timestamp, one.key is not None) for one in new]
    header = read_header(batch)
    assert header.size == len(batch)
    assert header.max_timestamp == max(one.timestamp for one in new)


@given(several, codecs, st.data())
def test_a_cut_batch_is_refused(new: list[NewRecord], codec: Compression, data: st.DataObject) -> None:
    batch = build_batch(new, compression=codec)
    cut = batch[: data.draw(st.integers(0, len(batch) - 1))]
    assert refused(cut)
    assert list(batches(cut)) == []


@given(several, codecs, st.data())
@settings(max_examples=200)
def test_a_flipped_byte_is_seen(new: list[NewRecord], codec: Compression, data: st.DataObject) -> None:
    batch = build_batch(new, base_offset=5, leader_epoch=6, compression=codec)
    opened = open_batch(batch)
    place = data.draw(st.integers(0, len(batch) - 1))
    batch[place] ^= data.draw(st.integers(1, 255))
    if place < 8:  # the base offset, which the checksum leaves to the leader
        moved = open_batch(batch)
        assert moved[0].offset != opened[0].offset
        assert [one[1:] for one in moved] == [one[1:] for one in opened]
    elif EPOCH_AT <= place < EPOCH_AT + 4:
        assert open_batch(batch) == opened
        assert read_header(batch).leader_epoch != 6
    else:
        assert refused(batch)


@given(several, codecs, st.data())
@settings(max_examples=300)
def test_lies_under_a_right_checksum_end_in_a_fault(
    new: list[NewRecord], codec: Compression, data: st.DataObject
) -> None:
    batch = build_batch(new, compression=codec)
    for _ in range(data.draw(st.integers(1, 4))):
        batch[data.draw(st.integers(CHECKED_FROM, len(batch) - 1))] = data.draw(st.integers(0, 255))
    struct.pack_into(">I", batch, CRC_AT, crc32c(bytes(batch[CHECKED_FROM:])))
    try:
        opened = open_batch(batch, 1 << 20)
    except (*REFUSALS, BatchTooLarge):
        return
    header = read_header(batch)
    assert len(opened) == header.records
    assert [one.offset for one in opened] == sorted({one.offset for one in opened})


@given(st.binary(max_size=200), st.integers(0, 4))
@settings(max_examples=200)
def test_noise_is_no_batch_and_no_stream(noise: bytes, codec: int) -> None:
    assert refused(noise)
    try:
        list(batches(noise))
        decompress(codec, noise, 1 << 16)
    except Fault:
        pass


@given(st.lists(several, max_size=4), codecs, st.data())
def test_a_run_of_batches_is_walked_up_to_the_cut(
    runs: list[list[NewRecord]], codec: Compression, data: st.DataObject
) -> None:
    built = [bytes(build_batch(new, base_offset=index, compression=codec)) for index, new in enumerate(runs)]
    run = b"".join(built)
    cut = data.draw(st.integers(0, len(run)))
    whole, left = [], cut
    for one in built:
        if len(one) > left:
            break
        whole.append(one)
        left -= len(one)
    assert [bytes(view) for view, _ in batches(run[:cut])] == whole


def refused(data: bytes | bytearray) -> bool:
    try:
        open_batch(data)
    except REFUSALS as fault:
        return bool(str(fault))
    return False
