"""Decoding and encoding in bulk, held against the slow twin in records/ on random batches, and on damage."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.client.visible_batches import SkippedOffsets, merge_adjacent, select_visible
from tailrace.model.faults import CorruptBatch, Fault
from tailrace.model.limits import MiB
from tailrace.pipeline.arrow.columns import Columns, decode, decode_runs
from tailrace.pipeline.arrow.encode import Rows, encode_records, record_sizes
from tailrace.records.build import TimestampType, build_batch, seal_batch
from tailrace.records.compress import Compression
from tailrace.records.header import CHECKED_FROM, CRC_AT
from tailrace.records.opened import batches, open_batch
from tailrace.records.record import NewRecord, Record
from tailrace.wire.messages.fetch import AbortedTransaction
from tests.properties.record_strategies import codecs, new_records, several

# Neighbours of one size are found by another way than others, so there have to be long runs of them.
alike = st.builds(lambda one, times: [one] * times, new_records, st.integers(60, 700))
runs = st.lists(several | alike, min_size=1, max_size=3).map(lambda lists: [one for part in lists for one in part])
stamps = st.sampled_from(["CreateTime", "LogAppendTime"])


def records_of(columns: Columns | None) -> list[Record]:
    """One by one, as the slow twin has them."""
    if columns is None:
        return []
    assert columns.headers is not None
    lists = [
        tuple((one["key"].decode("utf-8", "surrogateescape"), one["value"]) for one in row)
        for row in columns.headers.to_pylist()
    ]
    keys, values = columns.key.to_pylist(), columns.value.to_pylist()
    return list(map(Record, columns.offset.tolist(), columns.timestamp.tolist(), keys, values, lists))


def slowly(data: bytes) -> list[Record]:
    return [record for batch, _ in batches(data) for record in open_batch(batch)]


@given(st.lists(st.tuples(runs, codecs, stamps), min_size=1, max_size=4))
@settings(max_examples=60)
def test_columns_hold_what_the_slow_twin_reads(told: list[tuple[list[NewRecord], Compression, TimestampType]]) -> None:
    data, base = b"", 7
    for new, codec, kind in told:
        data += build_batch(new, base_offset=base, compression=codec, timestamp_type=kind)
        base += len(new)
    columns = decode(select_visible(data), headers=True)
    assert columns is not None
    assert records_of(columns) == slowly(data)
    assert columns.timestamp_type.tolist() == [int(kind == "LogAppendTime") for new, _, kind in told for _ in new]


@given(st.lists(st.tuples(several, codecs), min_size=1, max_size=6), st.integers(1, 3000))
@settings(max_examples=60)
def test_runs_hold_together_what_one_would(told: list[tuple[list[NewRecord], Compression]], most: int) -> None:
    data, base = b"", 0
    for new, codec in told:
        data += build_batch(new, base_offset=base, compression=codec)
        base += len(new)
    parts = list(decode_runs(select_visible(data), headers=True, max_bytes=most))
    assert [record for part in parts for record in records_of(part)] == slowly(data)
    assert [header.base_offset for part in parts for header in part.batches] == [
        h.base_offset for _, h in batches(data)
    ]


def test_a_run_is_bounded_by_what_its_batches_hold() -> None:
    large = [NewRecord(bytes(40 * MiB))]
    data = b"".join(build_batch(large, base_offset=offset, compression="zstd") for offset in range(2))
    assert len(data) < MiB
    assert [part.offset.tolist() for part in decode_runs(select_visible(data))] == [[0], [1]]


@given(runs, st.data())
@settings(max_examples=60)
def test_a_part_is_cut_out_by_offset(new: list[NewRecord], data: st.DataObject) -> None:
    columns = decode(select_visible(build_batch(new, base_offset=100)), headers=True)
    assert columns is not None
    first, end = sorted(data.draw(st.tuples(*[st.integers(90, 110 + len(new))] * 2)))
    assert records_of(columns.within(first, end)) == [
        record for record in records_of(columns) if first <= record.offset < end
    ]


@given(several | alike, st.data())
@settings(max_examples=300)
def test_damage_behind_a_right_checksum_is_seen_like_the_slow_twin_sees_it(
    new: list[NewRecord], data: st.DataObject
) -> None:
    batch = build_batch(new)
    for _ in range(data.draw(st.integers(1, 3))):
        batch[data.draw(st.integers(61, len(batch) - 1))] = data.draw(st.integers(0, 255))
    batch[CRC_AT : CRC_AT + 4] = crc32c(bytes(batch[CHECKED_FROM:])).to_bytes(4, "big")
    try:
        right = open_batch(batch)
    except Fault:
        with pytest.raises(CorruptBatch):
            decode(select_visible(batch), headers=True)
    else:
        assert records_of(decode(select_visible(batch), headers=True)) == right


def test_a_batch_that_does_not_fit_its_checksum_is_corrupt() -> None:
    batch = build_batch([NewRecord(b"value")])
    batch[-2] ^= 1
    with pytest.raises(CorruptBatch, match="offset 0"):
        select_visible(batch)


def test_empty_batches_of_a_compacted_log_are_passed_over() -> None:
    full = build_batch([NewRecord(b"a"), NewRecord(b"b")], base_offset=5)
    empty = seal_batch(b"", count=0, base_timestamp=0, max_timestamp=0, base_offset=3)
    empty[23:27] = (1).to_bytes(4, "big")  # two offsets, no record
    empty[CRC_AT : CRC_AT + 4] = crc32c(bytes(empty[CHECKED_FROM:])).to_bytes(4, "big")
    columns = decode(select_visible(bytes(empty + full + empty)))
    assert columns is not None
    assert columns.offset.tolist() == [5, 6]


def marker(producer: int, offset: int, kind: int) -> bytes:
    record = NewRecord(b"\0\0\0\0\0\0", key=b"\0\0" + kind.to_bytes(2, "big"))
    return bytes(
        build_batch(
            [record], base_offset=offset, producer_id=producer, producer_epoch=0, transactional=True, control=True
        )
    )


def written(producer: int, offset: int, *values: bytes) -> bytes:
    return bytes(
        build_batch(
            [NewRecord(value) for value in values], base_offset=offset, producer_id=producer, producer_epoch=0,
            base_sequence=0, transactional=True,
        )
    )  # fmt: skip


def values(columns: Columns | None) -> Sequence[bytes | None]:
    return [] if columns is None else columns.value.to_pylist()


def test_aborted_transactions_and_markers_are_left_out_and_named() -> None:
    data = (
        written(1, 0, b"aborted", b"aborted") + written(2, 2, b"committed") + marker(1, 3, 0) + marker(2, 4, 1)
        + written(1, 5, b"second, committed") + marker(1, 6, 1)
        + bytes(build_batch([NewRecord(b"plain")], base_offset=7))
    )  # fmt: skip
    chosen = select_visible(data, [AbortedTransaction(producer_id=1, first_offset=0)])
    assert values(decode(chosen)) == [b"committed", b"second, committed", b"plain"]
    assert merge_adjacent(chosen.skipped) == [
        SkippedOffsets(first=0, last=1, reason="aborted"),
        SkippedOffsets(first=3, last=4, reason="control"),
        SkippedOffsets(first=6, last=6, reason="control"),
    ]
    assert chosen.end == 8


def test_an_abort_that_begins_later_does_not_touch_what_was_before() -> None:
    data = written(1, 0, b"committed") + marker(1, 1, 1) + written(1, 2, b"aborted") + marker(1, 3, 0)
    chosen = select_visible(data, [AbortedTransaction(producer_id=1, first_offset=2)])
    assert values(decode(chosen)) == [b"committed"]


def test_uncommitted_reading_sees_all_that_producers_wrote() -> None:
    data = written(1, 0, b"aborted") + marker(1, 1, 0)
    assert values(decode(select_visible(data))) == [b"aborted"]


def as_rows(new: Sequence[NewRecord]) -> Rows:
    lists = [
        [{"key": name.encode("utf-8", "surrogateescape"), "value": value} for name, value in one.headers] for one in new
    ]
    kind = pa.list_(pa.struct([("key", pa.binary()), ("value", pa.binary())]))
    return Rows(
        key=pa.array([one.key for one in new], pa.binary()),
        value=pa.array([one.value for one in new], pa.binary()),
        timestamp=np.array([one.timestamp for one in new], np.int64),
        headers=pa.array(lists, kind),
    )


@given(runs)
@settings(max_examples=60)
def test_encoding_in_bulk_gives_the_same_bytes(new: list[NewRecord]) -> None:
    rows = as_rows(new)
    body = encode_records(rows)
    times = [one.timestamp for one in new]
    batch = seal_batch(memoryview(body), count=len(new), base_timestamp=times[0], max_timestamp=max(times))
    assert batch == build_batch(new)
    assert record_sizes(rows).sum() >= len(body)


@given(runs, st.data())
@settings(max_examples=30)
def test_a_slice_is_encoded_like_a_whole(new: list[NewRecord], data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(new) - 1))
    count = data.draw(st.integers(1, len(new) - first))
    part = new[first : first + count]
    assert bytes(encode_records(as_rows(new).slice(first, count))) == bytes(encode_records(as_rows(part)))


def test_records_without_headers_need_none() -> None:
    rows = as_rows([NewRecord(b"value", timestamp=3), NewRecord(None, key=b"", timestamp=2)])
    bare = Rows(key=rows.key, value=rows.value, timestamp=rows.timestamp)
    assert bytes(encode_records(bare)) == bytes(encode_records(rows))
