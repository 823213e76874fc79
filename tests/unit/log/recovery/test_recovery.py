"""Recovery: what is scanned, what is truncated, what is damage, and that no good batch is ever lost."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tailrace.log.log import Log, RecoveryPoint
from tailrace.log.recovery import recovery
from tailrace.log.segment_walk import WalkedBatch, walk_in_turns
from tailrace.model.faults import StorageFailed
from tailrace.ports import Ports, system_ports
from tailrace.ports.disk import File
from tests.unit.log.logs import (
    NOW,
    cut_file,
    everything,
    image_of,
    names,
    on_loop,
    one_batch,
    open_log,
    put,
    read,
    restore,
    segment_path,
    topic,
    trouble,
    turns,
)

small = topic(segment_bytes=1024, index_interval_bytes=150)
batch_size = len(one_batch([b"value 0"]))


def value(number: int) -> bytes:
    return b"value %d" % (number % 10)


async def filled(folder: Path, count: int) -> Log:
    log = await open_log(folder, settings=small)
    for number in range(count):
        put(log, one_batch([value(number)], producer=(7, 0, number)), epoch=1 + number // 4)
    return log


async def reopened(
    folder: Path, point: RecoveryPoint | None, *, clean: bool = False, ports: Ports | None = None
) -> Log:
    return await open_log(folder, settings=small, recovery=point, clean=clean, ports=ports)


async def assert_whole(log: Log, count: int) -> None:
    assert (log.start, log.end, log.durable, log.damage) == (0, count, count, None)
    assert [record.value for record in await everything(log)] == [value(number) for number in range(count)]
    assert log.epochs.entries() == [(1 + number // 4, number) for number in range(0, count, 4)]
    if count:
        assert put(log, one_batch([value(count - 1)], producer=(7, 0, count - 1))).duplicate
    assert put(log, one_batch([value(count)], producer=(7, 0, count)), epoch=99).base_offset == count


def watch_walks(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Record which files recovery walks through, and from which byte on."""
    seen: list[tuple[str, int]] = []

    def spy(file: File, position: int, stop: int, *, check: bool) -> AsyncIterator[WalkedBatch]:
        seen.append((Path(file.path).name, position))
        return walk_in_turns(file, position, stop, check=check)

    monkeypatch.setattr(recovery, "walk_in_turns", spy)
    return seen


@pytest.mark.parametrize("count", [0, 1, 3, 35])
@on_loop
async def test_after_a_clean_stop_only_the_last_few_bytes_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    log = await filled(tmp_path / "p", count)
    point = await log.close()
    walks = watch_walks(monkeypatch)
    again = await reopened(tmp_path / "p", point, clean=True)
    if count:
        (walked,) = walks
        assert walked[0] == Path(log.segments[-1].file.path).name
        assert log.segments[-1].size - walked[1] < 150 + 2 * batch_size
    await assert_whole(again, count)


@pytest.mark.parametrize("checkpointed", [None, 0, 1, 11, 29, 30])
@on_loop
async def test_after_a_kill_nothing_is_missing(tmp_path: Path, checkpointed: int | None) -> None:
    log = await open_log(tmp_path / "p", settings=small)
    point = None
    for number in range(30):
        if number == checkpointed:
            point = await log.checkpoint()
        put(log, one_batch([value(number)], producer=(7, 0, number)), epoch=1 + number // 4)
    if checkpointed == 30:
        point = await log.checkpoint()
    await assert_whole(await reopened(tmp_path / "p", point), 30)


@on_loop
async def test_only_what_lies_above_the_point_is_scanned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = await filled(tmp_path / "p", 30)
    point = await log.checkpoint()
    put(log, one_batch([value(30)], producer=(7, 0, 30)), epoch=8)
    walks = watch_walks(monkeypatch)
    again = await reopened(tmp_path / "p", point)
    last = Path(log.segments[-1].file.path).name
    assert [name for name, _ in walks] == [last, last]
    assert walks[-1][1] == log.segments[-1].size - batch_size
    await assert_whole(again, 31)


@on_loop
async def test_a_file_truncated_at_every_byte(tmp_path: Path) -> None:
    """Below the recovery point it is damage, above it a torn tail; whole batches stay in both cases."""
    log = await filled(tmp_path / "p", 2)
    point = await log.checkpoint()
    assert point == RecoveryPoint(offset=2)
    for number in range(2, 5):
        put(log, one_batch([value(number)], producer=(7, 0, number)), epoch=1 + number // 4)
    image, ports = image_of(tmp_path / "p"), system_ports()
    for size in range(log.size_bytes + 1):
        restore(tmp_path / "p", image)
        cut_file(segment_path(tmp_path / "p"), size)
        log = await reopened(tmp_path / "p", point, ports=ports)
        kept = size // batch_size
        if kept >= 2:
            assert log.size_bytes == kept * batch_size
            await assert_whole(log, kept)
            continue
        assert log.damage is not None
        assert (log.damage.offset, log.damage.position) == (kept, kept * batch_size)
        assert [record.value for record in await everything(log, kept)] == [value(number) for number in range(kept)]
        assert segment_path(tmp_path / "p").stat().st_size == size  # nothing is changed
        with pytest.raises(StorageFailed):
            put(log)
        with pytest.raises(StorageFailed):
            await read(log, kept)


@pytest.mark.parametrize("bit", [0x01, 0x40])
@on_loop
async def test_a_bit_flipped_in_every_byte(tmp_path: Path, bit: int) -> None:
    log = await filled(tmp_path / "p", 2)
    point = await log.checkpoint()
    put(log, one_batch([value(2)], producer=(7, 0, 2)))
    image, ports, path = image_of(tmp_path / "p"), system_ports(), segment_path(tmp_path / "p")
    good = image[path.name]
    for at in range(len(good)):
        flipped, within = divmod(at, batch_size)
        if 12 <= within < 16:
            continue  # the leader epoch has no checksum
        restore(tmp_path / "p", image)
        path.write_bytes(good[:at] + bytes([good[at] ^ bit]) + good[at + 1 :])
        log = await reopened(tmp_path / "p", point, ports=ports)
        if flipped >= 2:
            assert (log.damage, log.end) == (None, flipped)
            assert path.read_bytes() == good[: flipped * batch_size]
            continue
        if log.damage is None:  # not read when opening, found by a read
            with pytest.raises(StorageFailed, match="damaged"):
                await everything(log)
        assert log.damage is not None
        assert log.damage.offset <= flipped
        assert len(path.read_bytes()) == len(good)  # nothing is removed
        with pytest.raises(StorageFailed):
            put(log)


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("known", [True, False])
@on_loop
async def test_nothing_is_truncated_where_no_tail_can_be_torn(tmp_path: Path, clean: bool, known: bool) -> None:
    """After a clean stop, or with an unreadable checkpoint file, bad bytes are damage; later starts keep it so."""
    log = await filled(tmp_path / "p", 35)
    await log.close()
    assert log.stops_clean
    path = tmp_path / "p" / f"{log.segments[1].base:020d}.log"
    bad = log.segments[1].base + 3
    good = path.read_bytes()
    path.write_bytes(good[: 3 * batch_size + 70] + bytes([good[3 * batch_size + 70] ^ 1]) + good[3 * batch_size + 71 :])
    image = image_of(tmp_path / "p")
    recovery = RecoveryPoint(offset=5) if known else None
    log = await open_log(tmp_path / "p", settings=small, recovery=recovery, clean=clean, may_truncate=clean)
    for _ in range(2):
        assert log.damage is not None
        assert log.damage.offset == bad
        assert [record.value for record in await everything(log, bad)] == [value(number) for number in range(bad)]
        with pytest.raises(StorageFailed):
            put(log)
        recorded = await log.close()
        assert image_of(tmp_path / "p") == image
        log = await reopened(tmp_path / "p", recorded)


@pytest.mark.parametrize("lost", [0, 1])
@on_loop
async def test_a_segment_lost_after_a_clean_stop_is_damage_without_a_checkpoint_too(tmp_path: Path, lost: int) -> None:
    log = await filled(tmp_path / "p", 35)
    await log.close()
    bases = [segment.base for segment in log.segments]
    cut_file(tmp_path / "p" / f"{bases[lost]:020d}.log", 2 * batch_size)
    log = await reopened(tmp_path / "p", None, clean=True)
    assert log.damage is not None
    assert log.damage.offset == bases[lost] + 2
    assert len(list((tmp_path / "p").glob("*.log"))) == len(bases)


@on_loop
async def test_damage_found_by_a_read_is_not_truncated_at_the_next_start(tmp_path: Path) -> None:
    log = await filled(tmp_path / "p", 2)
    point = await log.checkpoint()
    for number in range(2, 5):
        put(log, one_batch([value(number)], producer=(7, 0, number)))
    path = segment_path(tmp_path / "p")
    good = path.read_bytes()
    path.write_bytes(good[: 3 * batch_size + 70] + b"?" + good[3 * batch_size + 71 :])
    with pytest.raises(StorageFailed):
        await everything(log)
    again = await log.close()
    assert again != point
    assert log.stops_clean
    log = await reopened(tmp_path / "p", again)
    assert log.end == 5
    assert len(path.read_bytes()) == len(good)


@on_loop
async def test_a_log_whose_checkpoint_failed_does_not_stop_clean(tmp_path: Path) -> None:
    disk, ports = trouble()
    log = await open_log(tmp_path / "p", settings=small, ports=ports)
    await log.checkpoint()
    assert log.stops_clean  # an empty log
    put(log)
    disk.hold = True
    closing = asyncio.ensure_future(log.close())
    while not disk.held:
        await turns()
    assert not log.stops_clean
    disk.held.pop(0)[1].set_exception(OSError("no"))
    disk.hold = False
    await disk.release()
    await closing
    assert not log.stops_clean


@on_loop
async def test_a_hole_above_the_recovery_point_truncates_all_that_follows(tmp_path: Path) -> None:
    log = await filled(tmp_path / "p", 35)
    assert len(log.segments) == 3
    path = tmp_path / "p" / f"{log.segments[1].base:020d}.log"
    second = log.segments[1].base
    data = path.read_bytes()
    path.write_bytes(data[:batch_size] + bytes(batch_size) + data[2 * batch_size :])
    log = await reopened(tmp_path / "p", None)
    assert sorted(name.name for name in (tmp_path / "p").glob("*.log")) == [f"{0:020d}.log", path.name]
    await assert_whole(log, second + 1)


@on_loop
async def test_a_segment_after_lost_bytes_is_removed(tmp_path: Path) -> None:
    log = await filled(tmp_path / "p", 35)
    second = log.segments[1].base
    cut_file(segment_path(tmp_path / "p"), (second - 2) * batch_size)
    log = await reopened(tmp_path / "p", None)
    assert [name for name in names(tmp_path / "p") if name.endswith(".log")] == [f"{0:020d}.log"]
    await assert_whole(log, second - 2)


@on_loop
async def test_a_falling_epoch_ends_the_log(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p")
    put(log, epoch=5)
    path = segment_path(tmp_path / "p")
    path.write_bytes(path.read_bytes() + one_batch(base_offset=1, epoch=4))
    assert (await open_log(tmp_path / "p")).end == 1


@on_loop
async def test_missing_segments_are_damage(tmp_path: Path) -> None:
    log = await filled(tmp_path / "p", 35)
    point = await log.close()
    last = log.segments[-1]
    (tmp_path / "p" / f"{last.base:020d}.log").unlink()
    log = await reopened(tmp_path / "p", point, clean=True)
    assert log.damage is not None
    assert (log.damage.offset, log.end) == (last.base, 35)
    assert len(await everything(log, last.base)) == last.base
    shutil.rmtree(tmp_path / "p")
    log = await reopened(tmp_path / "p", point, clean=True)
    assert log.damage is not None
    assert "there is no segment file" in str(log.damage)
    with pytest.raises(StorageFailed):
        put(log)
    assert not (tmp_path / "p").exists()


@pytest.mark.parametrize("lost", ["*.producers", "leader-epochs", "*.index", "*.timeindex", "*"])
@pytest.mark.parametrize("how", ["missing", "broken"])
@on_loop
async def test_state_files_are_rebuilt_from_the_batches(tmp_path: Path, lost: str, how: str) -> None:
    log = await filled(tmp_path / "p", 35)
    point = await log.close()
    for path in (tmp_path / "p").glob(lost):
        if path.suffix != ".log":
            path.unlink() if how == "missing" else path.write_bytes(path.read_bytes()[:-1])
    log = await reopened(tmp_path / "p", point, clean=True)
    again = await log.checkpoint()
    assert again == point
    await assert_whole(log, 35)
    assert len(list((tmp_path / "p").glob("*.producers"))) >= 1


@on_loop
async def test_stray_files_are_removed(tmp_path: Path) -> None:
    await filled(tmp_path / "p", 3)
    for name in ("leader-epochs.new", f"{99:020d}.producers", f"{50:020d}.index"):
        (tmp_path / "p" / name).write_bytes(b"x")
    (tmp_path / "p" / "note.txt").write_text("somebody else's")
    await reopened(tmp_path / "p", None)
    assert sorted(path.name for path in (tmp_path / "p").iterdir()) == [f"{0:020d}.log", "note.txt"]


@on_loop
async def test_what_was_scanned_is_fsynced_before_it_counts_as_durable(tmp_path: Path) -> None:
    await filled(tmp_path / "p", 3)
    disk, ports = trouble()
    disk.hold = True
    opening = asyncio.ensure_future(open_log(tmp_path / "p", settings=small, ports=ports))
    await turns()
    assert not opening.done()
    assert disk.held_names() == [f"{0:020d}.log"]
    while not opening.done():
        await disk.release()
    assert (await opening).durable == 3


@on_loop
async def test_the_log_start_survives_a_restart(tmp_path: Path) -> None:
    log = await filled(tmp_path / "p", 35)
    await log.advance_start(5)
    point = await log.close()
    assert point == RecoveryPoint(offset=35, start=5)
    for clean in (True, False):
        assert (await reopened(tmp_path / "p", point, clean=clean)).start == 5


@on_loop
async def test_max_timestamps_survive(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p", settings=small)
    times = [NOW + (number * 37) % 50 for number in range(35)]
    for number, time in enumerate(times):
        put(log, one_batch([value(number)], timestamps=[time]))
    expected = [segment.indexes.max_timestamp for segment in log.segments if segment.indexes is not None]
    point = await log.close()
    log = await reopened(tmp_path / "p", point, clean=True)
    assert [await segment.max_timestamp() for segment in log.segments] == expected
    log = await reopened(tmp_path / "p", None)
    assert [await segment.max_timestamp() for segment in log.segments] == expected
