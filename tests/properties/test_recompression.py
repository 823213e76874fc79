"""A batch compressed anew holds the same records, under the same header but for codec, length and checksum."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.faults import BatchTooLarge, CorruptBatch
from tailrace.model.limits import BATCH_HEADER_BYTES, MiB
from tailrace.records.build import build_batch, seal_batch
from tailrace.records.compress import COMPRESSIONS, Compression
from tailrace.records.header import BatchHeader, check_batch
from tailrace.records.opened import open_batch
from tailrace.records.recompress import recompress
from tailrace.records.record import NewRecord

LEVELS: dict[Compression, list[int | None]] = {
    "none": [None],
    "gzip": [-1, 1, 9],
    "snappy": [None],
    "lz4": [1, 3, 9, 17],
    "zstd": [-131072, 3, 22],
}
some_bytes = st.none() | st.binary(max_size=200)
records = st.builds(
    NewRecord,
    value=some_bytes,
    key=some_bytes,
    headers=st.lists(st.tuples(st.text(max_size=5), some_bytes), max_size=3).map(tuple),
    timestamp=st.integers(0, 2**40),
)


def kept(header: BatchHeader) -> tuple[object, ...]:
    return header._replace(length=0, crc=0, attributes=header.attributes & ~7)


@given(
    st.lists(records, min_size=1, max_size=20),
    st.sampled_from(COMPRESSIONS),
    st.sampled_from([(codec, level) for codec in COMPRESSIONS for level in LEVELS[codec]]),
    st.booleans(),
)
def test_records_and_header_are_kept(
    new: list[NewRecord], sent: Compression, wanted: tuple[Compression, int | None], transactional: bool
) -> None:
    batch = build_batch(
        new, compression=sent, producer_id=7, producer_epoch=3, base_sequence=11, transactional=transactional
    )
    header = check_batch(memoryview(batch))
    codec, level = wanted
    after = recompress(batch, codec, level, MiB).batch
    assert kept(check_batch(memoryview(after))) == kept(header)
    assert COMPRESSIONS[check_batch(memoryview(after)).compression] == codec
    assert open_batch(after) == open_batch(batch)


def test_what_cannot_be_decompressed_or_is_too_large_is_refused() -> None:
    bomb = build_batch([NewRecord(value=bytes(MiB))], compression="zstd")
    with pytest.raises(BatchTooLarge):
        recompress(bomb, "gzip", -1, MiB)
    good = build_batch([NewRecord(value=b"v" * 1000)], compression="gzip")
    torn = seal_batch(good[BATCH_HEADER_BYTES:-9], count=1, base_timestamp=0, max_timestamp=0, flags=1)
    with pytest.raises(CorruptBatch):
        recompress(torn, "zstd", 3, MiB)
