"""A follower's append: the leader's batches, unchanged, when they continue the log."""

from pathlib import Path

import pytest

from tailrace.model.faults import CorruptBatch
from tailrace.records.header import read_header
from tests.unit.log.logs import NOW, everything, filler, on_loop, one_batch, open_log, put, read


@on_loop
async def test_the_leaders_batches_are_stored_unchanged(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p")
    first = one_batch([b"a", b"b"], base_offset=10, epoch=3, producer=(1, 0, 0))
    second = one_batch([b"c"], base_offset=12, epoch=5)
    data = bytes(first) + bytes(second)
    assert log.append_as_is(memoryview(data + data[:30]), NOW) == 2
    assert (log.start, log.end) == (10, 13)
    assert log.epochs.entries() == [(3, 10), (5, 12)]
    assert log.producers.check(read_header(first)) is not None
    assert b"".join([bytes((await read(log, 10))[0])]) == data
    assert [record.offset for record in await everything(log)] == [10, 11, 12]
    for wrong in (
        one_batch(base_offset=12, epoch=5),
        one_batch(base_offset=13, epoch=4),
        one_batch(base_offset=14, epoch=5),  # skips an offset: a compacted leader sends an empty batch instead
    ):
        with pytest.raises(CorruptBatch, match="cannot follow"):
            log.append_as_is(wrong, NOW)
    flipped = bytearray(one_batch(base_offset=13, epoch=5))
    flipped[-1] ^= 1
    with pytest.raises(CorruptBatch, match="checksum"):
        log.append_as_is(memoryview(flipped), NOW)
    assert log.end == 13


@on_loop
async def test_a_filler_may_span_batches_that_the_follower_has(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p")
    put(log, one_batch([b"a", b"b"]))
    log.append_as_is(filler(0, 4), NOW)
    assert log.end == 5
    data, _ = await read(log, 2)
    assert bytes(data) == bytes(filler(2, 4))
    with pytest.raises(CorruptBatch, match="cannot follow"):
        log.append_as_is(filler(0, 4), NOW)
    with pytest.raises(CorruptBatch, match="cannot follow"):
        log.append_as_is(filler(6, 7), NOW)
