"""When a new segment begins, and what a write that the disk refuses leaves behind."""

from pathlib import Path

import pytest

from tailrace.model.faults import StorageFailed
from tests.unit.log.logs import DAY_MS, NOW, everything, filler, on_loop, one_batch, open_log, put, topic, trouble


@on_loop
async def test_a_segment_rolls_by_size(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p", settings=topic(segment_bytes=1024))
    size = len(one_batch())
    for _ in range(1024 // size + 1):
        put(log)
    assert [segment.base for segment in log.segments] == [0, 1024 // size]
    assert all(segment.size <= 1024 for segment in log.segments)
    put(log, one_batch([b"x" * 2000]))  # larger than segment.bytes: a segment of its own
    put(log)
    assert [segment.size for segment in log.segments][2] > 2000
    assert len(await everything(log)) == log.end


@on_loop
async def test_a_segment_rolls_by_age_of_its_first_batch(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p", settings=topic(segment_ms=1000))
    put(log, one_batch(timestamps=[NOW]))
    put(log, one_batch(timestamps=[NOW + 1000]))
    assert len(log.segments) == 1
    point = await log.close()
    log = await open_log(tmp_path / "p", settings=topic(segment_ms=1000), recovery=point, clean=True)
    put(log, one_batch(timestamps=[NOW + 1001]))
    assert [segment.base for segment in log.segments] == [0, 2]


@on_loop
async def test_a_segment_without_timestamps_rolls_by_the_brokers_clock(tmp_path: Path) -> None:
    def put_at(now_ms: int) -> list[int]:
        put(log, one_batch(timestamps=[-1]), now_ms=now_ms)
        return [segment.base for segment in log.segments]

    log = await open_log(tmp_path / "p", settings=topic(segment_ms=1000))
    assert [put_at(NOW), put_at(NOW + 1000), put_at(NOW + 1001)] == [[0], [0], [0, 2]]
    point = await log.close()
    log = await open_log(tmp_path / "p", settings=topic(segment_ms=1000), recovery=point, clean=True)
    later = NOW + DAY_MS  # the age of the segment is not known after a restart
    assert [put_at(later), put_at(later + 1000), put_at(later + 1001)] == [[0, 2], [0, 2], [0, 2, 5]]


@on_loop
async def test_a_segment_rolls_when_its_index_is_full(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p", settings=topic(index_interval_bytes=0, segment_index_bytes=40))
    for _ in range(30):  # each but the first of a segment has an entry of 8 bytes
        put(log)
    assert [segment.base for segment in log.segments] == [0, 6, 12, 18, 24]
    assert len(await everything(log)) == 30


@on_loop
async def test_segments_roll_up_to_the_jitter_earlier(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p", settings=topic(segment_ms=1000, segment_jitter_ms=400))
    ages = []
    for number in range(50):
        put(log, one_batch(timestamps=[NOW + number * 1001]))
        ages.append(log.roll_ms)
    assert len(log.segments) == 50
    assert len(dict.fromkeys(ages)) > 10
    assert all(600 < age <= 1000 for age in ages)


@on_loop
async def test_a_segment_rolls_before_its_relative_offsets_overflow(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p")
    put(log)
    log.append_as_is(filler(1, 2**31 - 2), NOW)
    log.append_as_is(one_batch(base_offset=2**31 - 1, epoch=1), NOW)
    assert len(log.segments) == 1
    put(log)
    assert [segment.base for segment in log.segments] == [0, 2**31]


@on_loop
async def test_a_full_disk_refuses_and_leaves_nothing(tmp_path: Path) -> None:
    disk, ports = trouble()
    log = await open_log(tmp_path / "p", ports=ports)
    put(log, one_batch([b"a"], producer=(9, 0, 0)))
    disk.room_bytes = 50
    second = one_batch([b"b"], producer=(9, 0, 1))
    with pytest.raises(StorageFailed, match="the disk is full"):
        put(log, second)
    assert log.end == 1
    assert (tmp_path / "p" / f"{0:020d}.log").stat().st_size == log.size_bytes
    assert len(await everything(log)) == 1
    disk.room_bytes = None
    assert put(log, second)[:4] == (1, 1, False, -1)
    assert [record.value for record in await everything(log)] == [b"a", b"b"]


@on_loop
async def test_an_append_is_refused_when_no_segment_can_be_made(tmp_path: Path) -> None:
    (tmp_path / "p").write_text("a file where the folder should be")
    log = await open_log(tmp_path / "p" / "q")
    with pytest.raises(StorageFailed, match="cannot write"):
        put(log)
    (tmp_path / "p").unlink()
    assert put(log).base_offset == 0
