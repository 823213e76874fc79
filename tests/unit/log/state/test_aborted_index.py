"""The index of aborted transactions: lookups, truncation, rebuilds, and removal with its segment."""

import asyncio
from pathlib import Path

from tests.unit.log.logs import (
    NOW,
    image_of,
    names,
    on_loop,
    open_log,
    put,
    restore,
    segment_path,
    topic,
    trouble,
)
from tests.unit.log.state.transacting import aborted, mark, send


@on_loop
async def test_a_read_gets_the_aborted_transactions_that_overlap_it(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p")
    put(log)
    send(log, 7)
    put(log)
    send(log, 8)
    assert (mark(log, 7), mark(log, 8)) == (4, 5)
    put(log)
    assert await aborted(log, 0, 1) == []
    assert await aborted(log, 0, 2) == await aborted(log, 2, 3) == [(7, 1, 4)]
    assert await aborted(log, 4, 5) == [(7, 1, 4), (8, 3, 5)]
    assert await aborted(log, 5, 6) == [(8, 3, 5)]
    assert await aborted(log, 6, 7) == []


@on_loop
async def test_a_marker_in_a_later_segment_is_found(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p", settings=topic(segment_bytes=200))
    send(log, 7)
    send(log, 8)
    for _ in range(6):
        put(log)
    mark(log, 8)
    mark(log, 7)
    assert len(log.segments) > 3
    assert await aborted(log, 0, 1) == [
        (7, 0, 9)
    ]  # the search passes the other marker: a transaction below 1 is still open there
    assert await aborted(log, 0, 2) == [(8, 1, 8), (7, 0, 9)]


@on_loop
async def test_truncation_reopens_aborted_transactions(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p", settings=topic(segment_bytes=200))
    send(log, 7)
    first = mark(log, 7)
    send(log, 7)
    second = mark(log, 7)
    await log.checkpoint()
    await log.truncate_to(second)
    assert log.producers.transactions.open == {7: first + 1}
    mark(log, 7, commits=True)
    assert await aborted(log) == [(7, 0, first)]
    await log.truncate_to(0)
    for _ in range(6):
        put(log)
    assert await aborted(log) == []
    assert log.last_stable(log.end) == log.end


@on_loop
async def test_a_truncated_index_is_truncated_on_disk_too(tmp_path: Path) -> None:
    """The file still has the entry when the power fails; the recovery point lies below it."""
    log = await open_log(tmp_path / "p")
    put(log)
    point = await log.checkpoint()
    send(log, 7)
    marker = mark(log, 7)
    await log.checkpoint()
    assert "00000000000000000000.txnindex" in names(tmp_path / "p")
    await log.truncate_to(marker)
    mark(log, 7, commits=True)
    for _ in range(3):
        put(log)
    log = await open_log(tmp_path / "p", recovery=point)
    assert await aborted(log) == []


@on_loop
async def test_an_unreadable_index_is_rebuilt_from_the_batches(tmp_path: Path) -> None:
    """Also when the transaction began in an earlier segment."""
    log = await open_log(tmp_path / "p", settings=topic(segment_bytes=200))
    send(log, 7)
    for _ in range(4):
        put(log)
    marker = mark(log, 7)
    for _ in range(4):
        put(log)
    point = await log.close()
    spoiled = next((tmp_path / "p").glob("*.txnindex"))
    good = spoiled.read_bytes()
    spoiled.write_bytes(bytes([good[0] ^ 1]) + good[1:])
    log = await open_log(tmp_path / "p", settings=topic(segment_bytes=200), recovery=point, clean=True)
    assert log.aborted_between(0, log.end) is None
    assert await aborted(log) == [(7, 0, marker)]
    await log.close()
    assert spoiled.read_bytes() == good


@on_loop
async def test_retention_removes_the_index_with_its_segment(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p", settings=topic(segment_bytes=200, retention_ms=1))
    send(log, 7)
    mark(log, 7)
    for _ in range(4):
        put(log)
    await log.checkpoint()
    assert any(name.endswith(".txnindex") for name in names(tmp_path / "p"))
    await log.retain(NOW + 1000, log.end)
    assert not any(name.endswith(".txnindex") for name in names(tmp_path / "p"))
    assert await aborted(log, log.start) == []


@on_loop
async def test_a_segment_that_a_crash_brings_back_has_its_index(tmp_path: Path) -> None:
    """A power cut may undo the removal of a segment; without its index, its transactions would not count as aborted."""
    disk, ports = trouble()
    settings = topic(segment_bytes=200, retention_ms=1)
    log = await open_log(tmp_path / "p", settings=settings, ports=ports)
    send(log, 7)
    mark(log, 7)
    for _ in range(2):
        put(log)
    point = await log.checkpoint()
    before = image_of(tmp_path / "p")
    disk.hold = True
    retaining = asyncio.ensure_future(log.retain(NOW + 1000, log.end))
    while segment_path(tmp_path / "p").exists():  # other fsyncs come first
        await disk.release()
    left = image_of(tmp_path / "p")
    retaining.cancel()
    restore(tmp_path / "p", before | left)  # removals that were not fsynced are undone
    for name in before:
        if name.endswith(".txnindex") and name not in left:
            (tmp_path / "p" / name).unlink()
    log = await open_log(tmp_path / "p", settings=settings, recovery=point)
    assert (log.start, await aborted(log)) == (0, [(7, 0, 1)])


@on_loop
async def test_an_index_without_its_segment_is_ignored(tmp_path: Path) -> None:
    settings = topic(segment_bytes=200, retention_ms=1)
    log = await open_log(tmp_path / "p", settings=settings)
    send(log, 7)
    mark(log, 7)
    for _ in range(4):
        put(log)
    await log.checkpoint()
    (left,) = (tmp_path / "p").glob("*.txnindex")
    data = left.read_bytes()
    await log.retain(NOW + 1000, log.end - 1)
    point = await log.close()
    left.write_bytes(data)  # its removal was not durable
    log = await open_log(tmp_path / "p", settings=settings, recovery=point, clean=True)
    assert log.start > 1
    assert await aborted(log, log.start) == []
