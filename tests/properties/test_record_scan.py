"""The quick scan of plain batches against the one for all: it reads the same, or leaves the batch to the other."""

from hypothesis import given
from hypothesis import strategies as st

from tailrace.log.compaction.record_scan import PLAIN_MAX_RECORDS, record_starts, scan, scan_plain
from tailrace.model.faults import CorruptBatch
from tailrace.model.limits import BATCH_HEADER_BYTES
from tailrace.records.build import build_batch, seal_batch
from tailrace.records.header import read_header
from tailrace.records.record import NewRecord

KEYS = st.binary(max_size=6) | st.binary(min_size=62, max_size=66)
VALUES = st.none() | st.binary(max_size=6) | st.sampled_from([bytes(size) for size in (63, 64, 8191, 8192, 20_000)])
TIMESTAMPS = st.integers(min_value=0, max_value=3) | st.sampled_from([64, 8192, 2**20, 2**34])
HEADERS = st.just(()) | st.just((("name", b"value"),))
NONE = st.just(())
PLAIN = st.builds(NewRecord, key=st.binary(max_size=63), value=VALUES, timestamp=st.integers(0, 8192), headers=NONE)
BARE = st.builds(NewRecord, key=st.none() | KEYS, value=VALUES, timestamp=TIMESTAMPS, headers=NONE)
ANY = st.builds(NewRecord, key=st.none() | KEYS, value=VALUES, timestamp=TIMESTAMPS, headers=HEADERS)


@given(st.lists(PLAIN, min_size=1, max_size=80))
def test_plain_batches_are_read_as_by_the_full_scan(records: list[NewRecord]) -> None:
    batch = memoryview(build_batch(records))
    header, body = read_header(batch), bytes(batch[BATCH_HEADER_BYTES:])
    quick, full = scan_plain(header, body), scan(batch, header, body)
    assert quick is not None
    assert (quick.keys, list(quick.deltas), quick.tombstones) == (full.keys, full.deltas, full.tombstones)


@given(st.one_of(*(st.lists(kind, min_size=1, max_size=8) for kind in (PLAIN, BARE, ANY))), st.data())
def test_what_the_quick_scan_accepts_the_full_scan_reads_in_the_same_way(
    records: list[NewRecord], data: st.DataObject
) -> None:
    body = bytearray(build_batch(records)[BATCH_HEADER_BYTES:])
    starts = record_starts(len(records), bytes(body))
    for _ in range(data.draw(st.integers(0, 2))):  # most of what can go wrong is where records end and begin
        at = data.draw(st.sampled_from(starts)) + data.draw(st.integers(-1, 5))
        body[at % len(body)] = data.draw(st.integers(0, 255))
    del body[data.draw(st.integers(len(body) - 3, len(body))) :]
    batch = memoryview(
        seal_batch(
            bytes(body), count=len(records), last_offset_delta=len(records) - 1, base_timestamp=0, max_timestamp=0
        )
    )
    header = read_header(batch)
    quick = scan_plain(header, bytes(body))
    try:
        full = scan(batch, header, bytes(body))
    except CorruptBatch:
        assert quick is None
        return
    assert record_starts(len(records), bytes(body)) == full.starts
    if quick is not None:
        assert (quick.keys, list(quick.deltas), quick.tombstones) == (full.keys, full.deltas, full.tombstones)


def test_a_batch_with_two_byte_deltas_is_plain_up_to_their_limit() -> None:
    for count, plain in ((65, True), (PLAIN_MAX_RECORDS, True), (PLAIN_MAX_RECORDS + 1, False)):
        batch = memoryview(build_batch([NewRecord(key=b"k", value=b"v", timestamp=1)] * count))
        header, body = read_header(batch), bytes(batch[BATCH_HEADER_BYTES:])
        assert (scan_plain(header, body) is not None) is plain
        assert list(scan(batch, header, body).deltas) == list(range(count))


def test_a_batch_that_lacks_records_is_not_plain() -> None:
    batch = build_batch([NewRecord(key=b"k", value=b"v", timestamp=1)])
    gapped = memoryview(
        seal_batch(batch[BATCH_HEADER_BYTES:], count=1, last_offset_delta=3, base_timestamp=1, max_timestamp=1)
    )
    assert scan_plain(read_header(gapped), bytes(gapped[BATCH_HEADER_BYTES:])) is None
