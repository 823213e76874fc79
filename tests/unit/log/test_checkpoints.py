"""The data directory's own files: checkpoints, whose directory it is, how it was left, who holds it."""

import asyncio
import logging
from pathlib import Path

import pytest

from tailrace.log.checkpoints import Checkpoint, load_checkpoints, store_checkpoints
from tailrace.log.log import RecoveryPoint
from tailrace.log.meta import Meta, load_meta, store_meta, take_clean_marker, write_clean_marker
from tailrace.log.state_file import Unreadable
from tailrace.model.ids import BrokerId, Id, TopicPartition
from tailrace.ports import system_ports
from tests.unit.log.logs import names, now, on_loop, one_batch, open_log, put, topic, trouble

topic_id = Id(bytes(range(16)))


@on_loop
async def test_checkpoints_come_back(tmp_path: Path) -> None:
    disk, folder = system_ports().disk, str(tmp_path)
    assert load_checkpoints(disk, folder) == {}
    points = {
        TopicPartition(topic_id, number): Checkpoint(
            recovery=RecoveryPoint(offset=number * 10, start=number), high_watermark=number * 9
        )
        for number in range(3)
    }
    await store_checkpoints(disk, folder, points)
    assert load_checkpoints(disk, folder) == points
    assert names(tmp_path) == ["checkpoint"]


@on_loop
async def test_a_broken_checkpoint_is_not_taken_for_a_missing_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    disk, folder = system_ports().disk, str(tmp_path)
    point = Checkpoint(recovery=RecoveryPoint(offset=5), high_watermark=5)
    await store_checkpoints(disk, folder, {TopicPartition(topic_id, 0): point})
    path = tmp_path / "checkpoint"
    path.write_bytes(path.read_bytes().replace(b" 5 ", b" 6 "))
    with caplog.at_level(logging.WARNING):
        assert load_checkpoints(disk, folder) is None
    assert "all logs will be scanned" in caplog.text


@on_loop
async def test_meta_properties(tmp_path: Path) -> None:
    disk, folder = system_ports().disk, str(tmp_path)
    assert load_meta(disk, folder) is None
    meta = Meta(cluster_id="abc=", broker_id=BrokerId(3), directory_id=topic_id)
    await store_meta(disk, folder, meta)
    assert load_meta(disk, folder) == meta
    path = tmp_path / "meta.properties"
    good = path.read_text()
    assert "node.id=3\n" in good
    for wrong in (
        "",
        good.replace("version=1", "version=2"),
        good.replace("node.id=3\n", ""),
        good.replace("=3", "=x"),
    ):
        path.write_text(wrong)
        with pytest.raises(Unreadable, match=r"meta\.properties"):
            load_meta(disk, folder)


@on_loop
async def test_the_clean_marker_is_taken_once(tmp_path: Path) -> None:
    disk, folder = system_ports().disk, str(tmp_path)
    assert not await take_clean_marker(disk, folder)
    await write_clean_marker(disk, folder, "boot-1")
    assert (tmp_path / "clean-shutdown").read_text() == "boot-1\n"
    assert await take_clean_marker(disk, folder)
    assert not await take_clean_marker(disk, folder)


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
async def test_snapshots_of_the_last_two_points_are_kept(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p")
    for _ in range(5):
        put(log)
        await log.checkpoint()
    kept = [name for name in names(tmp_path / "p") if name.endswith(".producers")]
    assert kept == [f"{4:020d}.producers", f"{5:020d}.producers"]


@on_loop
async def test_entries_that_come_while_a_segment_is_saved_and_sealed_are_saved_too(tmp_path: Path) -> None:
    settings = topic(segment_bytes=1024, index_interval_bytes=150)
    disk, ports = trouble()
    log = await open_log(tmp_path / "p", settings=settings, ports=ports)
    for number in range(6):
        put(log, one_batch([b"v"], timestamps=[now + number]))
    await log.flush()
    disk.hold = True
    checkpoint = asyncio.ensure_future(log.checkpoint())
    while not any(name.endswith(".index") for name in disk.held_names()):
        await disk.release()
    while len(log.segments) == 1:
        put(log, one_batch([b"v"], timestamps=[now + log.end]))
    disk.hold = False
    await disk.release()
    await checkpoint
    sealed = log.segments[0]
    last = log.segments[1].base - 1
    point = await log.close()
    log = await open_log(tmp_path / "p", settings=settings, recovery=point, clean=True)
    assert await log.segments[0].max_timestamp() == now + last
    found = await log.offset_for_time(now + last - 1, log.end)
    assert found is not None
    assert found.offset == last - 1
    indexes = await log.segments[0].load()
    assert indexes is not None
    assert indexes.place(last)[1] > sealed.size - 400
