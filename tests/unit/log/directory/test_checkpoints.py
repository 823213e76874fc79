"""The data directory's own files: checkpoints, whose directory it is, how it was left, who holds it."""

import asyncio
import logging
from pathlib import Path

import pytest

from tailrace.log.directory.checkpoints import Checkpoint, load_checkpoints, store_checkpoints
from tailrace.log.directory.meta import FirstVoter, Meta, load_meta, store_meta, take_clean_marker, write_clean_marker
from tailrace.log.directory.state_file import Unreadable
from tailrace.log.file_names import offsets_named
from tailrace.log.log import RecoveryPoint
from tailrace.model.ids import BrokerId, Id, TopicPartition
from tailrace.ports import system_ports
from tests.unit.log.logs import NOW, names, on_loop, one_batch, open_log, put, topic, trouble, turns

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
    assert "all logs are scanned" in caplog.text


@on_loop
async def test_meta_properties(tmp_path: Path) -> None:
    disk, folder = system_ports().disk, str(tmp_path)
    assert load_meta(disk, folder) is None
    voters = (FirstVoter(BrokerId(3), topic_id), FirstVoter(BrokerId(1), topic_id, "fe80::1", 9192))
    meta = Meta(cluster_id="abc=", broker_id=BrokerId(3), directory_id=topic_id, peer_port=9193, voters=voters)
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
        good.replace("peer.port=9193\n", ""),
        good.replace("metadata.voters=", "metadata.voters=3@me,"),
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
async def test_snapshots_stay_until_a_later_point_is_recorded(tmp_path: Path) -> None:
    def kept() -> list[int]:
        return offsets_named(names(tmp_path / "p"), ".producers")

    log = await open_log(tmp_path / "p")
    points = []
    for _ in range(5):
        put(log)
        points.append(await log.checkpoint())
    assert kept() == [1, 2, 3, 4, 5]  # none is recorded: the next start may be told of any, or of none
    assert points[2] is not None
    log.recorded(points[2])
    put(log)
    await log.checkpoint()
    assert kept() == [3, 4, 5, 6]


@on_loop
async def test_a_checkpoint_syncs_little_and_all_at_once(tmp_path: Path) -> None:
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
    assert (tmp_path / "p" / "leader-epochs").stat().st_ino == epochs  # it had not changed
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
