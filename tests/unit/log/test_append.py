"""Appending: what is stamped, what is refused, when a segment is full, and what a full disk leaves."""

import struct
from pathlib import Path

import pytest

from tailrace.log.log import RecoveryPoint
from tailrace.model.faults import BatchTooLarge, CorruptBatch, InvalidTimestamp, StorageFailed
from tailrace.model.limits import ADMITTED_OPEN_MAX_BYTES, ADMITTED_OPEN_MAX_RECORDS, BATCH_HEADER_BYTES
from tailrace.model.settings import NEVER_MS
from tailrace.records.build import build_batch
from tailrace.records.compress import COMPRESSIONS
from tailrace.records.crc import crc32c
from tailrace.records.header import CHECKED_FROM, CRC_AT, MAX_TIMESTAMP_AT, check_batch, read_header
from tailrace.records.record import NewRecord
from tests.unit.log.logs import DAY_MS, NOW, everything, names, on_loop, one_batch, open_log, put, read, topic, trouble


@on_loop
async def test_opening_nothing_touches_nothing(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "t" / "p-0")
    assert (log.start, log.end, log.durable, log.size_bytes) == (0, 0, 0, 0)
    assert (await log.read_cold(0, 100, 0)).data == b""
    assert await log.checkpoint() is None
    await log.close()
    assert names(tmp_path) == []


@on_loop
async def test_offsets_and_epoch_are_stamped_in_place(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p")
    put(log, one_batch([b"a", b"b"]), epoch=4)
    batch = one_batch([b"c"])
    appended = put(log, batch, epoch=7)
    assert appended[:4] == (2, 2, False, -1)
    header = check_batch(batch)
    assert (header.base_offset, header.leader_epoch) == (2, 7)
    assert log.end == 3
    assert log.epochs.entries() == [(4, 0), (7, 2)]
    data, following = await read(log, 2)
    assert (bytes(data), following) == (bytes(batch), 3)


@on_loop
async def test_log_append_time_is_written_and_answered(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p", settings=topic(message_timestamp_type="LogAppendTime"))
    late = NOW + 30 * DAY_MS  # no bound applies to the producer's time
    batch = one_batch([b"a"], timestamps=[late], producer=(1, 0, 0))
    assert put(log, batch).append_time_ms == NOW
    assert check_batch(batch).max_timestamp == NOW
    assert [record.timestamp for record in await everything(log)] == [NOW]
    again = put(log, one_batch([b"a"], timestamps=[late], producer=(1, 0, 0)), now_ms=NOW + 5)
    assert again[:4] == (0, 0, True, NOW)


@on_loop
async def test_limits_hold_unless_internal(tmp_path: Path) -> None:
    settings = topic(max_message_bytes=100, message_timestamp_after_max_ms=10, message_timestamp_before_max_ms=20)
    log = await open_log(tmp_path / "p", settings=settings)
    large = one_batch([b"x" * 100])
    with pytest.raises(BatchTooLarge, match=r"max\.message\.bytes is 100"):
        put(log, large)
    for timestamp in (NOW + 11, NOW - 21):
        with pytest.raises(InvalidTimestamp):
            put(log, one_batch(timestamps=[timestamp]))
    assert log.end == 0
    for timestamp in (NOW + 10, NOW - 20, -1):
        put(log, one_batch(timestamps=[timestamp]))
    log.append(large, check_batch(large), 1, NOW, internal=True)
    assert log.end == 4


@on_loop
async def test_limits_hold_for_every_record_s_time(tmp_path: Path) -> None:
    before = await open_log(tmp_path / "b", settings=topic(message_timestamp_before_max_ms=20))
    after = await open_log(tmp_path / "a", settings=topic(message_timestamp_after_max_ms=10))
    for log, wrong, text in ((before, NOW - 21, "too far back"), (after, NOW + 11, "too far ahead")):
        for compression in COMPRESSIONS:
            batch = one_batch([b"a", b"b", b"c"], timestamps=[NOW, wrong, NOW], compression=compression)
            with pytest.raises(InvalidTimestamp, match=text):
                put(log, saying_max_timestamp(batch, NOW))
            put(log, one_batch([b"a", b"b", b"c"], timestamps=[NOW, -1, NOW], compression=compression))
        assert log.end == 3 * len(COMPRESSIONS)


@on_loop
async def test_a_batch_whose_times_cannot_be_seen_is_refused_where_they_are_limited(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p", settings=topic(message_timestamp_before_max_ms=20))
    with pytest.raises(BatchTooLarge, match="holds more than"):
        put(log, one_batch([bytes(ADMITTED_OPEN_MAX_BYTES)], compression="zstd"))
    with pytest.raises(BatchTooLarge, match="send smaller batches"):
        put(log, one_batch([b""] * (ADMITTED_OPEN_MAX_RECORDS + 1)))
    garbage = build_batch([NewRecord(value=b"v" * 20, timestamp=NOW)])
    garbage[BATCH_HEADER_BYTES:] = b"\xff" * (len(garbage) - BATCH_HEADER_BYTES)
    with pytest.raises(CorruptBatch):
        put(log, saying_max_timestamp(memoryview(garbage), NOW))
    assert log.end == 0


@on_loop
async def test_no_batch_is_opened_where_times_are_not_limited(tmp_path: Path) -> None:
    for name, settings in (("a", topic()), ("b", topic(message_timestamp_after_max_ms=NEVER_MS))):
        log = await open_log(tmp_path / name, settings=settings)
        garbage = build_batch([NewRecord(value=b"v" * 20, timestamp=NOW)])
        garbage[BATCH_HEADER_BYTES:] = b"\xff" * (len(garbage) - BATCH_HEADER_BYTES)
        put(log, saying_max_timestamp(memoryview(garbage), NOW))
        assert log.end == 1


def saying_max_timestamp(batch: memoryview, timestamp: int) -> memoryview:
    """The batch with a header that claims this, and a checksum that fits."""
    struct.pack_into(">q", batch, MAX_TIMESTAMP_AT, timestamp)
    struct.pack_into(">I", batch, CRC_AT, crc32c(batch[CHECKED_FROM:]))
    return batch


@on_loop
async def test_a_segment_rolls_by_size(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p", settings=topic(segment_bytes=1024))
    size = len(one_batch())
    for _ in range(1024 // size + 1):
        put(log)
    assert [segment.base for segment in log.segments] == [0, 1024 // size]
    assert all(segment.size <= 1024 for segment in log.segments)
    put(log, one_batch([b"x" * 2000]))  # larger than a segment: it gets one of its own
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
async def test_a_segment_of_records_without_a_time_rolls_by_the_brokers_clock(tmp_path: Path) -> None:
    def put_at(now_ms: int) -> list[int]:
        put(log, one_batch(timestamps=[-1]), now_ms=now_ms)
        return [segment.base for segment in log.segments]

    log = await open_log(tmp_path / "p", settings=topic(segment_ms=1000))
    assert [put_at(NOW), put_at(NOW + 1000), put_at(NOW + 1001)] == [[0], [0], [0, 2]]
    point = await log.close()
    log = await open_log(tmp_path / "p", settings=topic(segment_ms=1000), recovery=point, clean=True)
    later = NOW + DAY_MS  # how old the segment was is not known any more
    assert [put_at(later), put_at(later + 1000), put_at(later + 1001)] == [[0, 2], [0, 2], [0, 2, 5]]


@on_loop
async def test_a_segment_rolls_before_its_relative_offsets_overflow(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p")
    put(log)
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
async def test_a_segment_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "p").write_text("a file where the folder should be")
    log = await open_log(tmp_path / "p" / "q")
    with pytest.raises(StorageFailed, match="could not be written"):
        put(log)
    (tmp_path / "p").unlink()
    assert put(log).base_offset == 0


@on_loop
async def test_a_followers_batches_are_kept_as_they_are(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p")
    first = one_batch([b"a", b"b"], base_offset=10, epoch=3, producer=(1, 0, 0))
    second = one_batch([b"c"], base_offset=15, epoch=5)  # a gap: the leader's log was compacted
    data = bytes(first) + bytes(second)
    assert log.append_as_is(memoryview(data + data[:30]), NOW) == 2
    assert (log.start, log.end) == (10, 16)
    assert log.epochs.entries() == [(3, 10), (5, 15)]
    assert log.producers.check(read_header(first)) is not None
    assert b"".join([bytes((await read(log, 10))[0])]) == data
    assert [record.offset for record in await everything(log)] == [10, 11, 15]
    for wrong in (one_batch(base_offset=15, epoch=5), one_batch(base_offset=16, epoch=4)):
        with pytest.raises(CorruptBatch, match="cannot follow"):
            log.append_as_is(wrong, NOW)
    flipped = bytearray(one_batch(base_offset=16, epoch=5))
    flipped[-1] ^= 1
    with pytest.raises(CorruptBatch, match="checksum"):
        log.append_as_is(memoryview(flipped), NOW)
    assert log.end == 16


@on_loop
async def test_settings_can_change(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p")
    put(log)
    log.use(topic(segment_bytes=1024, max_message_bytes=10))
    with pytest.raises(BatchTooLarge):
        put(log)


@on_loop
async def test_a_closed_log_refuses(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p")
    put(log)
    assert await log.close() == RecoveryPoint(offset=1, start=0)
    with pytest.raises(StorageFailed, match="closed"):
        put(log)


@on_loop
async def test_a_deleted_log_is_gone(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p", fsync="always")
    put(log)
    await log.delete()
    assert names(tmp_path) == []
    with pytest.raises(StorageFailed, match="deleted"):
        log.read(0, 1000, 1)
    with pytest.raises(StorageFailed, match="deleted"):
        await log.read_cold(0, 1000, 1)
    with pytest.raises(StorageFailed, match="deleted"):
        put(log)
