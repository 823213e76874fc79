"""Group commit: what is durable when, and what a failed fsync means."""

import asyncio
from pathlib import Path

import pytest

from tailrace.log.log import Log
from tailrace.model.faults import StorageFailed
from tests.unit.log.logs import NOW, TroubleDisk, on_loop, one_batch, open_log, put, topic, trouble, turns

FIRST_LOG = f"{0:020d}.log"


async def held_log(folder: Path, **settings: int) -> tuple[Log, TroubleDisk, list[int]]:
    disk, ports = trouble()
    log = await open_log(folder, settings=topic(**settings), fsync="always", ports=ports)
    disk.hold = True
    moves: list[int] = []
    log.on_durable = lambda: moves.append(log.durable)
    return log, disk, moves


@on_loop
async def test_the_first_batch_waits_for_its_folders_too(tmp_path: Path) -> None:
    log, disk, moves = await held_log(tmp_path / "p-0")
    put(log)
    assert disk.held == []  # a round starts from the loop, not from the append
    await turns()
    assert disk.held_names() == sorted([FIRST_LOG, "p-0", tmp_path.name])
    for _, sync in disk.held[:2]:
        sync.set_result(None)
    await turns()
    assert (log.durable, moves) == (0, [])
    disk.held[2][1].set_result(None)
    await turns()
    assert (log.durable, moves) == (1, [1])


@on_loop
async def test_durable_is_the_log_end_when_the_fsync_started(tmp_path: Path) -> None:
    log, disk, moves = await held_log(tmp_path / "p")
    put(log)
    put(log)  # the same turn of the loop: the same round
    await turns()
    put(log)
    put(log)
    await turns()
    assert len([name for name in disk.held_names() if name == FIRST_LOG]) == 1  # one at a time
    await disk.release()
    assert (log.durable, moves) == (2, [2])
    assert disk.held_names() == [FIRST_LOG]  # what was appended meanwhile is in the next round
    await disk.release()
    assert (log.durable, moves) == (4, [2, 4])
    assert disk.held == []


@on_loop
async def test_repeated_requests_share_one_fsync(tmp_path: Path) -> None:
    log, disk, _ = await held_log(tmp_path / "p")
    put(log)
    for _ in range(3):
        log.sync_soon()
    await turns()
    log.sync_soon()  # nothing new: no further round
    await disk.release()
    assert (log.durable, disk.held) == (1, [])


@on_loop
async def test_durable_never_jumps_over_an_earlier_segment(tmp_path: Path) -> None:
    log, disk, moves = await held_log(tmp_path / "p", segment_bytes=1024)
    put(log, one_batch([b"x" * 900]))
    put(log, one_batch([b"x" * 900]))
    await turns()
    assert [name for name in disk.held_names() if name.endswith(".log")] == [FIRST_LOG, f"{1:020d}.log"]
    for path, sync in disk.held:
        if not path.endswith(FIRST_LOG):
            sync.set_result(None)
    await turns()
    assert (log.durable, moves) == (0, [])
    for path, sync in disk.held:
        if path.endswith(FIRST_LOG):
            sync.set_result(None)
    await turns()
    assert (log.durable, moves) == (2, [2])


@on_loop
async def test_a_new_segments_name_is_fsynced_before_it_counts_as_durable(tmp_path: Path) -> None:
    log, disk, _ = await held_log(tmp_path / "p", segment_bytes=1024)
    put(log, one_batch([b"x" * 900]))
    await turns()
    await disk.release()
    put(log, one_batch([b"x" * 900]))
    await turns()
    assert disk.held_names() == [f"{1:020d}.log", "p"]


@on_loop
async def test_flush_waits_for_what_was_written_before(tmp_path: Path) -> None:
    log, disk, _ = await held_log(tmp_path / "p")
    await log.flush()
    put(log)
    await turns()
    put(log)
    flushed = log.flush()
    await disk.release()
    assert not flushed.done()
    await disk.release()
    assert flushed.done()


@on_loop
async def test_a_failed_fsync_is_final(tmp_path: Path) -> None:
    log, disk, moves = await held_log(tmp_path / "p")
    reported: list[str] = []
    log.on_failed = lambda: reported.append(str(log.failed))
    put(log)
    flushed = log.flush()
    await turns()
    for _, sync in disk.held:
        sync.set_exception(OSError(5, "Input/output error"))
    disk.held.clear()
    await turns()
    assert len(reported) == 1
    assert "fsync failed" in reported[0]
    assert isinstance(flushed.exception(), OSError)
    with pytest.raises(StorageFailed, match="offline"):
        put(log)
    log.sync_soon()
    with pytest.raises(OSError, match="Input/output"):
        await log.flush()
    await turns()
    assert (disk.held, log.durable, moves) == ([], 0, [])  # never retried
    assert await log.checkpoint() is None


@pytest.mark.parametrize("fsync", ["interval", "never"])
@on_loop
async def test_without_fsync_always_durable_is_the_log_end(tmp_path: Path, fsync: str) -> None:
    disk, ports = trouble()
    log = await open_log(tmp_path / "p", fsync=fsync, ports=ports)  # type: ignore[arg-type]
    disk.hold = True
    put(log)
    await turns()
    assert (log.durable, disk.held) == (1, [])
    log.sync_soon()
    await turns()
    assert FIRST_LOG in disk.held_names()
    disk.hold = False
    await disk.release()


@on_loop
async def test_flush_messages_is_honoured(tmp_path: Path) -> None:
    disk, ports = trouble()
    log = await open_log(tmp_path / "p", ports=ports, settings=topic(flush_messages=3))
    disk.hold = True
    put(log, one_batch([b"a", b"b"]))
    await turns()
    assert disk.held == []
    put(log)
    await turns()
    assert FIRST_LOG in disk.held_names()
    await disk.release()
    put(log, one_batch([b"a", b"b"]))
    await turns()
    assert disk.held == []


@on_loop
async def test_flush_ms_is_honoured(tmp_path: Path) -> None:
    disk, ports = trouble()
    log = await open_log(tmp_path / "p", ports=ports, settings=topic(flush_ms=100))
    disk.hold = True
    put(log, now_ms=NOW)
    put(log, now_ms=NOW + 90)
    log.sync_if_due(NOW + 99)
    await turns()
    assert disk.held == []
    log.sync_if_due(NOW + 100)
    await turns()
    assert FIRST_LOG in disk.held_names()
    await disk.release()
    log.sync_if_due(NOW + 1000)
    await turns()
    assert disk.held == []


async def begin_truncation(log: Log, end: int) -> "asyncio.Task[None]":
    """Start a truncation; returns when the log is shorter, before the truncation is durable."""
    truncating = asyncio.create_task(log.truncate_to(end))
    while log.end > end:  # noqa: ASYNC110
        await asyncio.sleep(0)
    return truncating


@on_loop
async def test_a_round_under_way_does_not_cover_what_replaces_the_tail(tmp_path: Path) -> None:
    log, disk, moves = await held_log(tmp_path / "p")
    for _ in range(4):
        put(log)
    await turns()
    truncating = await begin_truncation(log, 1)
    await disk.release()
    assert (log.durable, moves) == (1, [1])
    await disk.release()
    await truncating
    put(log, one_batch([b"other"]))
    await turns()
    await disk.release()
    assert (log.durable, moves) == (2, [1, 2])


@on_loop
async def test_appends_are_refused_until_a_truncation_is_durable(tmp_path: Path) -> None:
    """Otherwise a crash could leave parts of the old and of the new tail, which nothing tells apart."""
    log, disk, _ = await held_log(tmp_path / "p")
    for _ in range(3):
        put(log)
    await turns()
    await disk.release()
    truncating = await begin_truncation(log, 1)
    with pytest.raises(StorageFailed, match="being truncated"):
        put(log, one_batch([b"other"]))
    await turns()
    await disk.release()
    await truncating
    assert put(log, one_batch([b"other"])).base_offset == 1


@on_loop
async def test_a_real_fsync_moves_durable(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p", fsync="always")
    moved = asyncio.Event()
    log.on_durable = moved.set
    put(log)
    assert log.durable == 0
    await moved.wait()
    assert log.durable == 1


@pytest.mark.parametrize("waiting", [False, True])
@on_loop
async def test_a_deleted_log_is_not_fsynced_first(tmp_path: Path, waiting: bool) -> None:
    disk, ports = trouble()
    log = await open_log(tmp_path / "p", ports=ports)
    disk.hold = True
    put(log)
    flushed = log.flush() if waiting else None
    await turns()
    under_way = disk.held_names()
    deleting = asyncio.ensure_future(log.delete())
    if flushed is not None:
        with pytest.raises(OSError, match="deleted"):
            await flushed
    async with asyncio.timeout(10):
        while disk.held_names() == under_way:
            await turns()
    assert len(disk.held) == len(under_way) + 1
    assert disk.held[-1][0] == str(tmp_path)  # the parent of the log's folder
    await disk.release()
    await deleting
    assert not (tmp_path / "p").exists()
    assert log.failed is None
