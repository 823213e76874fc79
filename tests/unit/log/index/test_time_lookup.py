"""Lookups by timestamp are exact to the record, for any order of timestamps, compression and segment."""

import random
from pathlib import Path

import pytest

from tailrace.log.index import time_lookup as lookup
from tailrace.log.log import Log
from tailrace.model.faults import StorageFailed
from tailrace.records.compress import Compression
from tailrace.records.control import leader_change_batch
from tailrace.records.header import read_header
from tests.unit.log.logs import NOW, on_loop, one_batch, open_log, put, segment_path, topic

small = topic(segment_bytes=1024, index_interval_bytes=200)


async def filled(folder: Path, times: list[int], compression: Compression = "none", per_batch: int = 3) -> Log:
    log = await open_log(folder, settings=small)
    for at in range(0, len(times), per_batch):
        some = times[at : at + per_batch]
        put(log, one_batch([b"v"] * len(some), timestamps=some, compression=compression), epoch=1 + at // 30)
    return log


def first(times: list[int], wanted: int, limit: int, start: int = 0) -> tuple[int, int, int] | None:
    for offset in range(start, limit):
        if times[offset] >= wanted:
            return (offset, times[offset], 1 + offset // 30)
    return None


@pytest.mark.parametrize("order", ["rising", "falling", "random", "same"])
@on_loop
async def test_a_lookup_is_exact_to_the_record(tmp_path: Path, order: str) -> None:
    chance = random.Random(order)
    times = {
        "rising": [NOW + 10 * number for number in range(90)],
        "falling": [NOW - 10 * number for number in range(90)],
        "random": [NOW + chance.randrange(900) for _ in range(90)],
        "same": [NOW] * 90,
    }[order]
    log = await filled(tmp_path / "p", times)
    assert len(log.segments) > 2
    wanted = sorted({time + delta for time in times for delta in (-1, 0, 1)})
    for restarted in (False, True):
        if restarted:
            log = await open_log(tmp_path / "p", settings=small, recovery=await log.close(), clean=True)
        for limit in (90, 45, 0):
            for time in wanted[:: 1 if restarted else 7]:
                assert await log.offset_for_time(time, limit) == first(times, time, limit)
        for limit in (90, 63, 45, 3):
            best = max(times[:limit])
            assert await log.max_timestamp(limit) == first(times, best, limit)
    assert await log.max_timestamp(0) is None
    await log.advance_start(50)
    for time in wanted[::5]:
        assert await log.offset_for_time(time, 90) == first(times, time, 90, start=50)
    assert await log.max_timestamp(90) == first(times, max(times[50:]), 90, start=50)


@pytest.mark.parametrize("compression", ["gzip", "snappy", "lz4", "zstd"])
@on_loop
async def test_compressed_batches_are_opened(tmp_path: Path, compression: Compression) -> None:
    times = [NOW + 10 * number for number in range(30)]
    log = await filled(tmp_path / "p", times, compression)
    for wanted in (NOW, NOW + 115, NOW + 290, NOW + 291):
        assert await log.offset_for_time(wanted, 30) == first(times, wanted, 30)


@on_loop
async def test_large_batches_are_opened_in_another_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "OPENED_HERE_MAX_RECORDS", 2)
    times = [NOW + 10 * number for number in range(9)]
    log = await filled(tmp_path / "p", times)
    try:
        assert await log.offset_for_time(NOW + 41, 9) == (5, NOW + 50, 1)
    finally:
        log.ports.offload.close()


@on_loop
async def test_log_append_time_needs_no_opening(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p", settings=topic(message_timestamp_type="LogAppendTime"))
    put(log, one_batch([b"a", b"b"]), now_ms=NOW)
    put(log, one_batch([b"a", b"b"]), now_ms=NOW + 10)
    assert await log.offset_for_time(NOW + 1, 4) == (2, NOW + 10, 1)
    assert await log.max_timestamp(4) == (2, NOW + 10, 1)


@on_loop
async def test_an_empty_log_has_no_timestamps(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p")
    assert await log.offset_for_time(0, 0) is None
    assert await log.max_timestamp(0) is None


@on_loop
async def test_a_damaged_batch_is_reported(tmp_path: Path) -> None:
    log = await filled(tmp_path / "p", [NOW, NOW, NOW, NOW + 1, NOW + 1, NOW + 1])
    path = segment_path(tmp_path / "p")
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(StorageFailed, match=str(path)):
        await log.offset_for_time(NOW + 1, 6)
    assert log.damage is not None
    assert await log.offset_for_time(NOW, 6) == (0, NOW, 1)


@pytest.mark.parametrize("markers", [1, 20])
@on_loop
async def test_control_batches_do_not_count_for_the_highest_timestamp(tmp_path: Path, markers: int) -> None:
    log = await open_log(tmp_path / "p", settings=topic(index_interval_bytes=200))
    for number in (5, 9, 3, 9, 1, 2, 4):
        put(log, one_batch([b"v"], timestamps=[NOW + number]))
    for number in range(markers):
        batch = memoryview(
            leader_change_batch(
                leader=1, voters=[1], granting=[1], base_offset=0, leader_epoch=1, timestamp=NOW + 100 + number
            )
        )
        log.append(batch, read_header(batch), 1, NOW, internal=True)
    found = await log.max_timestamp(log.end)
    assert found is not None
    assert (found.offset, found.timestamp) == (1, NOW + 9)
