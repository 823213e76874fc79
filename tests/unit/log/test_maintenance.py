"""Retention by time and by size, and a start that moves: whole segments, below the high watermark, oldest first."""

import asyncio
import os
from pathlib import Path

import pytest

from tailrace.log.log import Log
from tailrace.model.faults import OffsetOutOfRange
from tailrace.model.topics import TopicSettings
from tests.unit.log.logs import (
    DAY_MS,
    NOW,
    everything,
    names,
    on_loop,
    one_batch,
    open_log,
    put,
    segment_path,
    topic,
    trouble,
)


def kept_for(ms: int = -1, size: int = -1) -> TopicSettings:
    return topic(segment_bytes=1024, retention_ms=ms, retention_bytes=size)


async def filled(folder: Path, settings: TopicSettings) -> Log:
    """Five segments of one batch each, a minute apart, the last of them just now."""
    log = await open_log(folder, settings=settings)
    for number in range(5):
        put(log, one_batch([b"x" * 900, b"y"], timestamps=[NOW - (4 - number) * 60_000] * 2))
    assert [segment.base for segment in log.segments] == [0, 2, 4, 6, 8]
    return log


@on_loop
async def test_old_segments_go(tmp_path: Path) -> None:
    log = await filled(tmp_path / "p", kept_for(ms=120_000))
    assert await log.retain(NOW, log.end) == 2
    assert (log.start, log.end) == (4, 10)
    assert len([name for name in names(tmp_path / "p") if name.endswith(".log")]) == 3
    assert [record.offset for record in await everything(log)] == list(range(4, 10))
    assert log.epochs.entries() == [(1, 0)]
    assert await log.retain(NOW, log.end) == 0


@on_loop
async def test_times_of_sealed_segments_are_known_after_a_restart(tmp_path: Path) -> None:
    log = await filled(tmp_path / "p", kept_for(ms=120_000))
    point = await log.close()
    (tmp_path / "p" / f"{2:020d}.timeindex").unlink()
    log = await open_log(tmp_path / "p", settings=kept_for(ms=120_000), recovery=point, clean=True)
    assert await log.retain(NOW, log.end) == 2
    assert log.segments[1].indexes is None  # twelve bytes were enough


@on_loop
async def test_a_segment_whose_records_have_no_time_goes_by_that_of_its_file(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p", settings=kept_for(ms=120_000))
    for _ in range(3):
        put(log, one_batch([b"x" * 900, b"y"], timestamps=[-1, -1]))
    for age_minutes, base in ((1, 4), (3, 2), (5, 0)):
        at_s = NOW / 1000 - age_minutes * 60
        os.utime(segment_path(tmp_path / "p", base), (at_s, at_s))
    assert await log.retain(NOW, log.end) == 2
    point = await log.close()
    log = await open_log(tmp_path / "p", settings=kept_for(ms=120_000), recovery=point, clean=True)
    assert log.start == 4
    assert await log.retain(NOW, log.end) == 0
    assert await log.retain(NOW + 120_000, log.end) == 1


@on_loop
async def test_nothing_above_the_high_watermark_goes(tmp_path: Path) -> None:
    log = await filled(tmp_path / "p", kept_for(ms=1))
    assert await log.retain(NOW + DAY_MS, 5) == 2
    assert log.start == 4


@pytest.mark.parametrize("batches", [1, 5])
@on_loop
async def test_what_comes_while_retention_looks_stays(tmp_path: Path, batches: int) -> None:
    log = await filled(tmp_path / "p", kept_for(ms=1))
    put(log, one_batch(timestamps=[NOW]))  # so that there is room in the active segment
    point = await log.close()
    log = await open_log(tmp_path / "p", settings=kept_for(ms=1), recovery=point, clean=True)
    retaining = asyncio.ensure_future(log.retain(NOW + DAY_MS, log.end))
    await asyncio.sleep(0)
    assert not retaining.done()
    for _ in range(batches):
        put(log, one_batch(timestamps=[NOW]), now_ms=NOW + DAY_MS)  # old by its own account, and not committed
    await retaining
    assert [record.offset for record in await everything(log)][-batches:] == list(range(11, 11 + batches))


@on_loop
async def test_by_size(tmp_path: Path) -> None:
    log = await filled(tmp_path / "p", kept_for(size=0))
    one = log.segments[0].size
    log.use(kept_for(size=3 * one + 1))
    assert await log.retain(NOW, log.end) == 1
    log.use(kept_for(size=0))
    assert await log.retain(NOW, log.end) == 3  # the active one stays
    assert log.start == 8


@on_loop
async def test_for_ever(tmp_path: Path) -> None:
    log = await filled(tmp_path / "p", kept_for())
    assert await log.retain(NOW + 1000 * DAY_MS, log.end) == 0


@on_loop
async def test_an_active_segment_that_is_all_too_old_is_rolled_first(tmp_path: Path) -> None:
    log = await filled(tmp_path / "p", kept_for(ms=1000))
    assert await log.retain(NOW + 1001, log.end) == 5
    assert (log.start, log.end, log.size_bytes) == (10, 10, 0)
    assert [name for name in names(tmp_path / "p") if name.endswith(".log")] == [f"{10:020d}.log"]
    assert await log.retain(NOW + DAY_MS, log.end) == 0
    again = await open_log(tmp_path / "p", settings=kept_for())
    assert (again.start, again.end) == (10, 10)  # where the log ends is not forgotten with the records
    point = await log.checkpoint()
    again = await open_log(tmp_path / "p", settings=kept_for(), recovery=point)
    assert (again.start, again.end, again.epochs.last) == (10, 10, 1)
    assert put(again).base_offset == 10


@on_loop
async def test_the_next_name_is_on_disk_before_the_last_records_go(tmp_path: Path) -> None:
    disk, ports = trouble()
    log = await open_log(tmp_path / "p", settings=kept_for(ms=1), ports=ports)
    put(log, one_batch(timestamps=[NOW]))
    await log.flush()
    seen: list[tuple[str, bool]] = []
    sync_dir = disk.sync_dir

    def watched(path: str) -> object:
        seen.append((Path(path).name, segment_path(tmp_path / "p").exists()))
        return sync_dir(path)

    disk.sync_dir = watched  # type: ignore[method-assign, assignment]
    assert await log.retain(NOW + 10, log.end) == 1
    assert (seen[0], seen[-1]) == (("p", True), ("p", False))


@on_loop
async def test_producers_expire_with_time(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p")
    put(log, one_batch(producer=(1, 0, 0)))
    await log.retain(NOW + DAY_MS, log.end)
    assert len(log.producers) == 0


@on_loop
async def test_the_start_moves_and_whole_segments_go(tmp_path: Path) -> None:
    log = await filled(tmp_path / "p", kept_for())
    await log.advance_start(5)
    assert (log.start, [segment.base for segment in log.segments]) == (5, [4, 6, 8])
    await log.advance_start(3)  # never back
    assert log.start == 5
    assert [record.offset for record in await everything(log)] == list(range(5, 10))
    await log.advance_start(10)
    assert (log.start, [segment.base for segment in log.segments]) == (10, [8])
    with pytest.raises(OffsetOutOfRange):
        await log.advance_start(11)
