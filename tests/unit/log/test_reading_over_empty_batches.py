"""Reads that skip the empty batches which compaction leaves, in several segments: one takes the place of all."""

from pathlib import Path

import pytest

from tailrace.log.compaction.fillers import is_filler
from tailrace.log.log import Log
from tailrace.log.reader import Read
from tailrace.log.segment_walk import checksum_problem
from tailrace.records.opened import batches
from tests.unit.log.logs import NOW, filler, on_loop, one_batch, open_log, topic

SPAN, FIRST, SECOND, END = 10, 300, 400, 500  # offsets of an empty batch, of the two records, and after the last one
segments_of_17_fillers = topic(segment_bytes=1024, index_interval_bytes=150)


async def compacted(folder: Path) -> Log:
    """Empty batches but for two records."""
    log = await open_log(folder / "p", settings=segments_of_17_fillers)
    for offset in range(0, END, SPAN):
        if offset in (FIRST, SECOND):
            log.append_as_is(one_batch(base_offset=offset, epoch=1), NOW)
            offset += 1
        log.append_as_is(filler(offset, offset // SPAN * SPAN + SPAN - 1), NOW)
    assert len(log.segments) > 2
    return log


async def skipping(log: Log, offset: int, limit: int = END) -> Read:
    cached = log.read(offset, 1 << 20, limit, skip_empty=True)
    cold = await log.read_cold(offset, 1 << 20, limit, skip_empty=True)
    assert cached is None or cached == cold
    return cold


def bases(read: Read) -> list[tuple[int, int]]:
    """The base offset of each batch and its number of records."""
    return [(header.base_offset, header.records) for _, header in batches(read.data)]


@pytest.mark.parametrize(
    ("offset", "first"), [(0, FIRST), (155, FIRST), (FIRST, FIRST), (FIRST + 1, SECOND), (SECOND - 1, SECOND)]
)
@on_loop
async def test_the_next_record_comes_first(tmp_path: Path, offset: int, first: int) -> None:
    read = await skipping(await compacted(tmp_path), offset)
    if offset < first:
        (skipped, header), *_ = batches(read.data)
        assert is_filler(header)
        assert checksum_problem(skipped) is None
        assert (header.base_offset, header.last_offset, header.leader_epoch) == (offset, first - 1, 1)
    assert bases(read)[offset < first] == (first, 1)
    assert read.next_offset > first


@pytest.mark.parametrize(("offset", "limit"), [(SECOND + 1, END), (0, FIRST), (0, 20), (END - 1, END)])
@on_loop
async def test_where_no_record_follows_a_reader_gets_on(tmp_path: Path, offset: int, limit: int) -> None:
    read = await skipping(await compacted(tmp_path), offset, limit)
    assert {records for _, records in bases(read)} == {0}
    assert offset < read.next_offset <= limit


@on_loop
async def test_a_replica_gets_every_batch(tmp_path: Path) -> None:
    log = await compacted(tmp_path)
    read = await log.read_cold(0, 1 << 20, END)
    assert bases(read)[:2] == [(0, 0), (SPAN, 0)]


@on_loop
async def test_nothing_takes_the_place_of_gaps(tmp_path: Path) -> None:
    """Earlier releases could write logs with gaps, and what is missing there is not explained by compaction."""
    log = await compacted(tmp_path)
    log.segments[0].has_gaps = True
    assert bases(await skipping(log, 0))[0] == (FIRST, 1)
