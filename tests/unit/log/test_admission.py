"""Checks of a batch against the topic's settings: size and timestamps."""

import struct
from pathlib import Path

import pytest

from tailrace.model.faults import BatchTooLarge, CorruptBatch, InvalidTimestamp
from tailrace.model.limits import ADMITTED_OPEN_MAX_BYTES, ADMITTED_OPEN_MAX_RECORDS, BATCH_HEADER_BYTES
from tailrace.model.settings import NEVER_MS
from tailrace.records.build import build_batch
from tailrace.records.compress import COMPRESSIONS
from tailrace.records.crc import crc32c
from tailrace.records.header import CHECKED_FROM, CRC_AT, MAX_TIMESTAMP_AT, check_batch
from tailrace.records.record import NewRecord
from tests.unit.log.logs import NOW, on_loop, one_batch, open_log, put, topic


@on_loop
async def test_limits_hold_unless_internal(tmp_path: Path) -> None:
    settings = topic(max_message_bytes=100, message_timestamp_after_max_ms=10, message_timestamp_before_max_ms=20)
    log = await open_log(tmp_path / "p", settings=settings)
    large = one_batch([b"x" * 100])
    with pytest.raises(BatchTooLarge, match=r"max\.message\.bytes=100"):
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
async def test_limits_hold_for_every_records_timestamp(tmp_path: Path) -> None:
    before = await open_log(tmp_path / "b", settings=topic(message_timestamp_before_max_ms=20))
    after = await open_log(tmp_path / "a", settings=topic(message_timestamp_after_max_ms=10))
    for log, wrong, text in ((before, NOW - 21, "before.max.ms allows"), (after, NOW + 11, "after.max.ms allows")):
        for compression in COMPRESSIONS:
            batch = one_batch([b"a", b"b", b"c"], timestamps=[NOW, wrong, NOW], compression=compression)
            with pytest.raises(InvalidTimestamp, match=text):
                put(log, with_max_timestamp(batch, NOW))
            put(log, one_batch([b"a", b"b", b"c"], timestamps=[NOW, -1, NOW], compression=compression))
        assert log.end == 3 * len(COMPRESSIONS)


@on_loop
async def test_a_batch_that_cannot_be_opened_is_refused_where_timestamps_are_limited(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p", settings=topic(message_timestamp_before_max_ms=20))
    with pytest.raises(BatchTooLarge, match="holds more than"):
        put(log, one_batch([bytes(ADMITTED_OPEN_MAX_BYTES)], compression="zstd"))
    with pytest.raises(BatchTooLarge, match="send smaller batches"):
        put(log, one_batch([b""] * (ADMITTED_OPEN_MAX_RECORDS + 1)))
    garbage = build_batch([NewRecord(value=b"v" * 20, timestamp=NOW)])
    garbage[BATCH_HEADER_BYTES:] = b"\xff" * (len(garbage) - BATCH_HEADER_BYTES)
    with pytest.raises(CorruptBatch):
        put(log, with_max_timestamp(memoryview(garbage), NOW))
    assert log.end == 0


@on_loop
async def test_no_batch_is_opened_where_timestamps_are_not_limited(tmp_path: Path) -> None:
    for name, settings in (("a", topic()), ("b", topic(message_timestamp_after_max_ms=NEVER_MS))):
        log = await open_log(tmp_path / name, settings=settings)
        garbage = build_batch([NewRecord(value=b"v" * 20, timestamp=NOW)])
        garbage[BATCH_HEADER_BYTES:] = b"\xff" * (len(garbage) - BATCH_HEADER_BYTES)
        put(log, with_max_timestamp(memoryview(garbage), NOW))
        assert log.end == 1


def with_max_timestamp(batch: memoryview, timestamp: int) -> memoryview:
    """The batch with this highest timestamp in its header, and a matching checksum."""
    struct.pack_into(">q", batch, MAX_TIMESTAMP_AT, timestamp)
    struct.pack_into(">I", batch, CRC_AT, crc32c(batch[CHECKED_FROM:]))
    return batch
