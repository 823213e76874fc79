"""Checkpoints, retention by time and by size, and a log start that moves."""

import asyncio
import os
from pathlib import Path

import pytest

from tailrace.log.file_names import offsets_named
from tailrace.log.log import Log, RecoveryPoint
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
    turns,
)


@on_loop
async def test_a_checkpoint_that_changes_nothing_writes_nothing(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p", settings=topic(segment_bytes=1024))
    for _ in range(20):
        put(log, one_batch(producer=None))
    point = await log.checkpoint()

    def stamps() -> list[tuple[str, int]]:
        return [(name, (tmp_path / "p" / name).stat().st_mtime_ns) for name in names(tmp_path / "p")]

    before = stamps()
    assert await log.checkpoint() == point
    assert stamps() == before
    again = await open_log(tmp_path / "p", settings=topic(segment_bytes=1024), recovery=point, clean=True)
    assert await again.checkpoint() == point
    assert stamps() == before


@on_loop
async def test_snapshots_stay_until_a_later_point_is_recorded(tmp_path: Path) -> None:
    def kept() -> list[int]:
        return offsets_named(names(tmp_path / "p"), ".producers")

    log = await open_log(tmp_path / "p")
    points = []
    for _ in range(5):
        put(log)
        points.append(await log.checkpoint())
    assert kept() == [1, 2, 3, 4, 5]  # none is recorded: the next start may use any of the points, or none
    assert points[2] is not None
    log.recorded(points[2])
    put(log)
    await log.checkpoint()
    assert kept() == [3, 4, 5, 6]


@on_loop
async def test_a_checkpoint_fsyncs_few_files_and_all_at_once(tmp_path: Path) -> None:
    disk, ports = trouble()
    log = await open_log(tmp_path / "p", ports=ports)
    put(log)
    await log.checkpoint()
    epochs = (tmp_path / "p" / "leader-epochs").stat().st_ino
    put(log, one_batch(timestamps=[NOW + 1]))
    disk.hold = True
    checkpoint = asyncio.ensure_future(log.checkpoint())
    await turns()
    assert disk.held_names() == [f"{0:020d}.log", f"{0:020d}.timeindex", f"{2:020d}.producers.new"]
    await disk.release()
    assert disk.held_names() == ["p"]
    await disk.release()
    assert await checkpoint == RecoveryPoint(offset=2)
    assert (tmp_path / "p" / "leader-epochs").stat().st_ino == epochs  # unchanged epochs are not written again
    put(log, epoch=5)
    disk.hold = False
    await log.checkpoint()
    assert (tmp_path / "p" / "leader-epochs").stat().st_ino != epochs


@on_loop
async def test_epochs_that_could_not_be_written_are_written_next_time(tmp_path: Path) -> None:
    disk, ports = trouble()
    log = await open_log(tmp_path / "p", ports=ports)
    put(log, epoch=3)
    await log.flush()
    disk.hold = True
    checkpoint = asyncio.ensure_future(log.checkpoint())
    await turns()
    for name, held in disk.held:
        held.set_exception(OSError("no")) if name.endswith("leader-epochs.new") else held.set_result(None)
    assert await checkpoint is None
    disk.hold = False
    assert await log.checkpoint() == RecoveryPoint(offset=1)
    assert "3 0\n" in (tmp_path / "p" / "leader-epochs").read_text()


@on_loop
async def test_entries_that_come_while_a_segment_is_saved_and_sealed_are_saved_too(tmp_path: Path) -> None:
    settings = topic(segment_bytes=1024, index_interval_bytes=150)
    disk, ports = trouble()
    log = await open_log(tmp_path / "p", settings=settings, ports=ports)
    for number in range(6):
        put(log, one_batch([b"v"], timestamps=[NOW + number]))
    await log.flush()
    disk.hold = True
    checkpoint = asyncio.ensure_future(log.checkpoint())
    while not any(name.endswith(".index") for name in disk.held_names()):
        await disk.release()
    while len(log.segments) == 1:
        put(log, one_batch([b"v"], timestamps=[NOW + log.end]))
    disk.hold = False
    await disk.release()
    await checkpoint
    sealed = log.segments[0]
    last = log.segments[1].base - 1
    point = await log.close()
    log = await open_log(tmp_path / "p", settings=settings, recovery=point, clean=True)
    assert await log.segments[0].max_timestamp() == NOW + last
    found = await log.offset_for_time(NOW + last - 1, log.end)
    assert found is not None
    assert found.offset == last - 1
    indexes = await log.segments[0].load()
    assert indexes is not None
    assert indexes.lookup(last)[1] > sealed.size - 400


def kept_for(ms: int = -1, size: int = -1) -> TopicSettings:
    return topic(segment_bytes=1024, retention_ms=ms, retention_bytes=size)


async def filled(folder: Path, settings: TopicSettings) -> Log:
    """Five segments of one batch each, a minute apart, the last one with the timestamp NOW."""
    log = await open_log(folder, settings=settings)
    for number in range(5):
        put(log, one_batch([b"x" * 900, b"y"], timestamps=[NOW - (4 - number) * 60_000] * 2))
    assert [segment.base for segment in log.segments] == [0, 2, 4, 6, 8]
    return log


@on_loop
async def test_old_segments_are_removed(tmp_path: Path) -> None:
    log = await filled(tmp_path / "p", kept_for(ms=120_000))
    assert await log.retain(NOW, log.end) == 2
    assert (log.start, log.end) == (4, 10)
    assert len([name for name in names(tmp_path / "p") if name.endswith(".log")]) == 3
    assert [record.offset for record in await everything(log)] == list(range(4, 10))
    assert log.epochs.entries() == [(1, 0)]
    assert await log.retain(NOW, log.end) == 0


@on_loop
async def test_timestamps_of_sealed_segments_are_known_after_a_restart(tmp_path: Path) -> None:
    log = await filled(tmp_path / "p", kept_for(ms=120_000))
    point = await log.close()
    (tmp_path / "p" / f"{2:020d}.timeindex").unlink()
    log = await open_log(tmp_path / "p", settings=kept_for(ms=120_000), recovery=point, clean=True)
    assert await log.retain(NOW, log.end) == 2
    assert log.segments[1].indexes is None  # the last entry of the time index was enough


@on_loop
async def test_a_segment_without_timestamps_expires_by_its_modification_time(tmp_path: Path) -> None:
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
async def test_nothing_above_the_high_watermark_is_removed(tmp_path: Path) -> None:
    log = await filled(tmp_path / "p", kept_for(ms=1))
    assert await log.retain(NOW + DAY_MS, 5) == 2
    assert log.start == 4


@pytest.mark.parametrize("batches", [1, 5])
@on_loop
async def test_appends_during_retention_are_kept(tmp_path: Path, batches: int) -> None:
    log = await filled(tmp_path / "p", kept_for(ms=1))
    put(log, one_batch(timestamps=[NOW]))  # so that there is room in the active segment
    point = await log.close()
    log = await open_log(tmp_path / "p", settings=kept_for(ms=1), recovery=point, clean=True)
    retaining = asyncio.ensure_future(log.retain(NOW + DAY_MS, log.end))
    await asyncio.sleep(0)
    assert not retaining.done()
    for _ in range(batches):
        put(log, one_batch(timestamps=[NOW]), now_ms=NOW + DAY_MS)  # old by its timestamps, but not committed
    await retaining
    assert [record.offset for record in await everything(log)][-batches:] == list(range(11, 11 + batches))


@on_loop
async def test_retention_by_size(tmp_path: Path) -> None:
    log = await filled(tmp_path / "p", kept_for(size=0))
    one = log.segments[0].size
    log.use(kept_for(size=3 * one + 1))
    assert await log.retain(NOW, log.end) == 1
    log.use(kept_for(size=0))
    assert await log.retain(NOW, log.end) == 3  # the active segment stays
    assert log.start == 8


@on_loop
async def test_unlimited_retention(tmp_path: Path) -> None:
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
    assert (again.start, again.end) == (10, 10)  # the log end survives the removal of all records
    point = await log.checkpoint()
    again = await open_log(tmp_path / "p", settings=kept_for(), recovery=point)
    assert (again.start, again.end, again.epochs.last) == (10, 10, 1)
    assert put(again).base_offset == 10


@on_loop
async def test_the_next_segment_is_durable_before_the_last_records_are_removed(tmp_path: Path) -> None:
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
async def test_the_log_start_moves_and_whole_segments_are_removed(tmp_path: Path) -> None:
    log = await filled(tmp_path / "p", kept_for())
    await log.advance_start(5)
    assert (log.start, [segment.base for segment in log.segments]) == (5, [4, 6, 8])
    await log.advance_start(3)  # the log start never moves back
    assert log.start == 5
    assert [record.offset for record in await everything(log)] == list(range(5, 10))
    await log.advance_start(10)
    assert (log.start, [segment.base for segment in log.segments]) == (10, [8])
    with pytest.raises(OffsetOutOfRange):
        await log.advance_start(11)
