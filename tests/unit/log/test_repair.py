"""A repaired log has every sound batch at its offset, no hole, and opens without damage."""

import os
import random
from pathlib import Path

import pytest

from tailrace.log.log import Log, RecoveryPoint
from tailrace.log.recovery import damage_mark, truncation
from tailrace.log.repair import Loss, examine, repair
from tailrace.ports import system_ports
from tailrace.ports.disk import Disk
from tests.unit.log.logs import everything, on_loop, one_batch, open_log, put, topic

COUNT = 100


async def written(folder: Path) -> tuple[RecoveryPoint, dict[int, bytes]]:
    """A closed log of a few segments, and its values by offset."""
    log = await open_log(folder, settings=topic(segment_bytes=6000))
    values = {offset: os.urandom(200) for offset in range(COUNT)}
    for value in values.values():
        put(log, one_batch([value]))
    assert len(log.segments) > 3
    point = await log.close()
    assert point is not None
    return point, values


async def repaired(folder: Path, losses: list[Loss]) -> Disk:
    disk = system_ports().disk
    await repair(disk, str(folder), losses, f"{folder}-aside/{folder.name}")
    return disk


async def reopened(folder: Path, point: RecoveryPoint, *, clean: bool = True) -> Log:
    log = await open_log(folder, settings=topic(segment_bytes=6000), recovery=point, clean=clean)
    assert log.damage is None
    assert log.refusal is None
    return log


def segments(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.log"))


def flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)


@on_loop
async def test_a_sound_log_has_no_losses(tmp_path: Path) -> None:
    await written(tmp_path / "log")
    assert examine(system_ports().disk, str(tmp_path / "log")) == []


@pytest.mark.parametrize("place", [2, 9, 16, 18, 25, 100])
@pytest.mark.parametrize("clean", [True, False])
@on_loop
async def test_one_flipped_bit_costs_one_batch(tmp_path: Path, place: int, clean: bool) -> None:
    folder = tmp_path / "log"
    point, values = await written(folder)
    path = segments(folder)[1]
    size = 12 + int.from_bytes(path.read_bytes()[8:12])
    original = path.read_bytes()
    flip(path, 3 * size + place)
    first = int(path.stem) + 3
    (loss,) = examine(system_ports().disk, str(folder))
    assert (loss.file, loss.position, loss.size, loss.first, loss.end) == (str(path), 3 * size, size, first, first + 1)
    damaged = path.read_bytes()
    await repaired(folder, [loss])
    assert (tmp_path / "log-aside" / "log" / path.name).read_bytes() == damaged != original
    log = await reopened(folder, point, clean=clean)
    assert {one.offset: one.value for one in await everything(log)} == {
        offset: value for offset, value in values.items() if offset != first
    }
    assert log.end == COUNT
    put(log)
    assert log.end == COUNT + 1


@pytest.mark.parametrize("seed", range(12))
@on_loop
async def test_any_damage_leaves_all_sound_batches(tmp_path: Path, seed: int) -> None:
    rng, folder = random.Random(seed), tmp_path / "log"
    point, values = await written(folder)
    for _ in range(rng.randint(1, 4)):
        path = rng.choice(segments(folder)[:-1])
        data = bytearray(path.read_bytes())
        begin = rng.randrange(len(data))
        end = min(len(data), begin + rng.choice([1, 50, 400, 3000]))
        if rng.random() < 0.3:
            del data[begin:]
        elif rng.random() < 0.3:
            data[begin:end] = b""
        else:
            data[begin:end] = rng.randbytes(end - begin)
        path.write_bytes(data)
    losses = examine(system_ports().disk, str(folder))
    lost = {offset for loss in losses for offset in range(loss.first, loss.end)}
    await repaired(folder, losses)
    assert examine(system_ports().disk, str(folder)) == []
    log = await reopened(folder, point)
    found = {one.offset: one.value for one in await everything(log)}
    assert found == {offset: value for offset, value in values.items() if offset not in lost}
    assert log.end == COUNT
    assert len(found) > COUNT // 4


@on_loop
async def test_without_a_sound_batch_behind_it_the_log_ends_at_the_damage(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    point, _ = await written(folder)
    path = segments(folder)[-1]
    path.write_bytes(b"\0" * path.stat().st_size)
    (loss,) = examine(system_ports().disk, str(folder))
    assert loss.is_tail
    assert f"offsets from {int(path.stem)} on" in str(loss)
    await repaired(folder, [loss])
    log = await reopened(folder, point)
    assert log.end == int(path.stem)


@on_loop
async def test_a_crash_in_the_middle_loses_nothing_behind_the_damage(tmp_path: Path) -> None:
    """The marks are stored, the segment is not replaced yet: nothing may be taken for a torn tail."""
    folder = tmp_path / "log"
    point, _ = await written(folder)
    flip(segments(folder)[1], 100)
    before = [path.stat().st_size for path in segments(folder)]
    disk = system_ports().disk
    (loss,) = examine(disk, str(folder))
    await damage_mark.mark(disk, str(folder), loss.first)
    await truncation.store_mark(disk, str(folder), loss.base)
    log = await open_log(folder, settings=topic(segment_bytes=6000), recovery=point)
    assert log.damage is not None
    await log.close()
    assert [path.stat().st_size for path in segments(folder)] == before
    await repaired(folder, examine(disk, str(folder)))
    assert (await reopened(folder, point)).end == COUNT
