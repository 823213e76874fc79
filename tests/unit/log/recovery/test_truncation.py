"""Truncation rolls back everything: bytes, segments, indexes, epochs, producers; and survives a crash (Raft §5.3)."""

import errno
import os
from pathlib import Path
from unittest.mock import patch

import pytest

from tailrace.log.log import Log
from tailrace.log.recovery import truncation
from tailrace.model.faults import OffsetOutOfRange, StorageFailed
from tests.unit.log.logs import (
    NOW,
    everything,
    names,
    on_loop,
    one_batch,
    open_log,
    put,
    segment_path,
    topic,
    write_gap,
)

small = topic(segment_bytes=1024, index_interval_bytes=150)


async def filled(folder: Path, count: int, log: Log | None = None) -> Log:
    log = log or await open_log(folder, settings=small)
    for number in range(log.end // 2, count):
        batch = one_batch([b"a%02d" % number, b"b"], producer=(7, 0, number * 2), timestamps=[NOW + number] * 2)
        put(log, batch, epoch=1 + number // 5)
    return log


async def image(log: Log) -> object:
    """Everything that can be observed of a log."""
    return (
        log.start,
        log.end,
        log.durable,
        log.size_bytes,
        log.epochs.entries(),
        log.producers.dump().split()[6:-2],  # except when the producer was last seen
        await everything(log),
        await log.max_timestamp(log.end),
        [await segment.max_timestamp() for segment in log.segments],
        [segment.indexes.offsets.dump() for segment in log.segments if segment.indexes is not None],
    )


@pytest.mark.parametrize("checkpointed", [None, 3, 40])
@pytest.mark.parametrize("end", [0, 1, 2, 17, 40, 79, 80])
@on_loop
async def test_a_truncated_log_equals_one_that_was_never_longer(
    tmp_path: Path, end: int, checkpointed: int | None
) -> None:
    log = await open_log(tmp_path / "p", settings=small)
    if checkpointed is not None:
        log = await filled(tmp_path / "p", checkpointed, log)
        await log.checkpoint()
    log = await filled(tmp_path / "p", 40, log)
    await log.truncate_to(end)
    for _ in range(2):
        other = await filled(tmp_path / f"other-{log.end}", log.end // 2)
        for segment in log.segments:
            await segment.load()
        if log.end:
            assert await image(log) == await image(other)
        log = await filled(tmp_path / "p", 45, log)
    assert log.end == 90


@on_loop
async def test_a_truncation_below_the_recovery_point_is_no_damage(tmp_path: Path) -> None:
    log = await filled(tmp_path / "p", 40)
    point = await log.checkpoint()
    await log.truncate_to(30)
    log = await open_log(tmp_path / "p", settings=small, recovery=point)
    assert (log.damage, log.end) == (None, 30)
    log = await filled(tmp_path / "p", 20, log)
    later = await log.checkpoint()
    log = await open_log(tmp_path / "p", settings=small, recovery=point)  # a crash before the later point was recorded
    assert (log.damage, log.end) == (None, 40)
    assert later is not None
    log = await open_log(tmp_path / "p", settings=small, recovery=later)
    put(log, epoch=9)
    await log.checkpoint()
    log.recorded(point or later)  # a point from before the truncation
    assert "truncated" in names(tmp_path / "p")
    covering = await log.checkpoint()
    assert covering is not None
    log.recorded(covering)
    await log.checkpoint()
    assert "truncated" not in names(tmp_path / "p")


@on_loop
async def test_a_truncation_outside_the_log(tmp_path: Path) -> None:
    log = await filled(tmp_path / "p", 20)
    await log.truncate_to(99)
    assert log.end == 40
    await log.advance_start(10)
    with pytest.raises(OffsetOutOfRange):
        await log.truncate_to(9)


@on_loop
async def test_a_gap_file_is_removed_with_the_tail(tmp_path: Path) -> None:
    log = await filled(tmp_path / "p", 2)
    await log.close()
    with segment_path(tmp_path / "p").open("ab") as file:
        file.write(one_batch(base_offset=100, epoch=9))
    write_gap(tmp_path / "p", 4, 100)
    again = await open_log(tmp_path / "p", settings=small)
    assert (again.end, [record.offset for record in await everything(again)]) == (101, [0, 1, 2, 3, 100])
    await again.truncate_to(4)
    assert not [name for name in names(tmp_path / "p") if name.endswith(".gap")]


@on_loop
async def test_checkpoints_go_on_after_a_truncation_that_the_disk_refused(tmp_path: Path) -> None:
    log = await filled(tmp_path / "p", 10)
    await recorded_checkpoint(log)

    async def no_room(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with patch.object(truncation, "store_mark", no_room), pytest.raises(OSError, match="No space left"):
        await log.truncate_to(4)
    for count in (20, 30, 40):
        await filled(tmp_path / "p", count, log)
        before = log.recovery_point
        await recorded_checkpoint(log)
        assert log.recovery_point != before


async def recorded_checkpoint(log: Log) -> None:
    point = await log.checkpoint()
    assert point is not None
    log.recorded(point)


@on_loop
async def test_damage_found_during_a_truncation_still_refuses_appends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = await filled(tmp_path / "p", 20)
    marking = truncation._mark

    async def damaged_meanwhile(one: Log, end: int) -> None:
        await marking(one, end)
        one.found_damage(one.segments[0], 0, 0, "a bit flipped")

    monkeypatch.setattr(truncation, "_mark", damaged_meanwhile)
    await log.truncate_to(30)
    with pytest.raises(StorageFailed, match="damaged"):
        put(log, one_batch([b"x"]))
