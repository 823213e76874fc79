"""A log as the broker uses it: opening, stamping, changed settings, closing and deletion."""

from pathlib import Path

import pytest

from tailrace.log.log import RecoveryPoint
from tailrace.model.faults import BatchTooLarge, StorageFailed
from tailrace.records.header import check_batch
from tests.unit.log.logs import DAY_MS, NOW, everything, names, on_loop, one_batch, open_log, put, read, topic


@on_loop
async def test_opening_a_missing_log_touches_nothing(tmp_path: Path) -> None:
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
async def test_log_append_time_is_stamped_and_returned(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p", settings=topic(message_timestamp_type="LogAppendTime"))
    late = NOW + 30 * DAY_MS  # no limit applies to the producer's timestamp
    batch = one_batch([b"a"], timestamps=[late], producer=(1, 0, 0))
    assert put(log, batch).append_time_ms == NOW
    assert check_batch(batch).max_timestamp == NOW
    assert [record.timestamp for record in await everything(log)] == [NOW]
    again = put(log, one_batch([b"a"], timestamps=[late], producer=(1, 0, 0)), now_ms=NOW + 5)
    assert again[:4] == (0, 0, True, NOW)


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
async def test_a_deleted_log_refuses_everything(tmp_path: Path) -> None:
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
