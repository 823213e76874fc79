"""Checks of a batch against the topic's settings: size, timestamps and keys."""

import struct
from collections.abc import Sequence
from pathlib import Path

import pytest

from tailrace.model.faults import BatchTooLarge, CorruptBatch, InvalidBatch, InvalidTimestamp
from tailrace.model.limits import (
    ADMITTED_OPEN_MAX_BYTES,
    ADMITTED_OPEN_MAX_RECORDS,
    BATCH_HEADER_BYTES,
    REJECTED_RECORDS_NAMED_MAX,
)
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


def keyed(*keys: bytes | None, timestamps: Sequence[int] | None = None) -> memoryview:
    times = timestamps or [NOW] * len(keys)
    return memoryview(
        build_batch([NewRecord(value=b"v", key=key, timestamp=time) for key, time in zip(keys, times, strict=True)])
    )


@on_loop
async def test_records_with_a_wrong_timestamp_are_named(tmp_path: Path) -> None:
    settings = topic(message_timestamp_before_max_ms=20, message_timestamp_after_max_ms=10)
    log = await open_log(tmp_path / "p", settings=settings)
    batch = one_batch([b"v"] * 5, timestamps=[NOW - 21, NOW, NOW - 20, -1, NOW - 22])
    with pytest.raises(
        InvalidTimestamp, match=r"rejected due to invalid timestamp: 2 in total, first record 0"
    ) as fault:
        put(log, batch)
    assert [one.position for one in fault.value.records] == [0, 4]
    assert str(NOW - 22) in fault.value.records[1].reason
    assert "message.timestamp.before.max.ms" in fault.value.records[1].reason


@on_loop
async def test_records_are_named_where_only_the_header_is_checked(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p")
    late = NOW + log.settings.message_timestamp_after_max_ms + 1
    assert not log.looks_at_records
    with pytest.raises(InvalidTimestamp) as fault:
        put(log, one_batch([b"v"] * 3, timestamps=[NOW, late, NOW], compression="zstd"))
    assert [one.position for one in fault.value.records] == [1]
    assert "message.timestamp.after.max.ms" in fault.value.records[0].reason


@on_loop
async def test_no_records_are_named_if_only_the_header_is_wrong_or_the_batch_is_not_opened(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p")
    late = NOW + log.settings.message_timestamp_after_max_ms + 1
    garbage = build_batch([NewRecord(value=b"v" * 20, timestamp=NOW)])
    garbage[BATCH_HEADER_BYTES:] = b"\xff" * (len(garbage) - BATCH_HEADER_BYTES)
    many = [b""] * (ADMITTED_OPEN_MAX_RECORDS + 1)
    for batch in (one_batch(), memoryview(garbage), one_batch(many, timestamps=[late] * len(many))):
        with pytest.raises(InvalidTimestamp, match=f"timestamp {late} is out of range") as fault:
            put(log, with_max_timestamp(batch, late))
        assert fault.value.records == ()
    assert log.end == 0


@on_loop
async def test_records_without_a_key_are_named_up_to_a_limit(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p", settings=topic(cleanup_policy="compact"))
    with pytest.raises(InvalidBatch, match=r"rejected due to missing key: 2 in total, first record 1") as fault:
        put(log, keyed(b"k", None, b"", None))
    assert [one.position for one in fault.value.records] == [1, 3]
    assert "without key" in fault.value.records[0].reason
    many = REJECTED_RECORDS_NAMED_MAX + 7
    with pytest.raises(InvalidBatch, match=f"{many} in total") as fault:
        put(log, keyed(*[None] * many))
    assert [one.position for one in fault.value.records] == list(range(REJECTED_RECORDS_NAMED_MAX))


@on_loop
async def test_a_wrong_timestamp_decides_the_error_of_a_batch_that_lacks_keys_too(tmp_path: Path) -> None:
    settings = topic(cleanup_policy="compact", message_timestamp_before_max_ms=20)
    log = await open_log(tmp_path / "p", settings=settings)
    with pytest.raises(InvalidTimestamp) as fault:
        put(log, keyed(None, b"k", timestamps=[NOW, NOW - 21]))
    assert [one.position for one in fault.value.records] == [0, 1]
    assert "without key" in fault.value.records[0].reason
    assert "before.max.ms" in fault.value.records[1].reason


def with_max_timestamp(batch: memoryview, timestamp: int) -> memoryview:
    """The batch with this highest timestamp in its header, and a matching checksum."""
    struct.pack_into(">q", batch, MAX_TIMESTAMP_AT, timestamp)
    struct.pack_into(">I", batch, CRC_AT, crc32c(batch[CHECKED_FROM:]))
    return batch
