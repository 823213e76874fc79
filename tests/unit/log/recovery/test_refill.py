"""A damaged log is discarded and refilled from its leader; a crash never leaves a part that looks complete."""

from pathlib import Path

import pytest

from tailrace.log.log import Log, RecoveryPoint
from tailrace.model.faults import OffsetOutOfRange, StorageFailed
from tailrace.model.ids import Id
from tailrace.ports.disk import make_lasting_dir
from tailrace.records.control import voters_batch
from tailrace.records.header import read_header
from tailrace.testing.simulation import World
from tailrace.testing.simulation.failures import Crashed
from tailrace.testing.simulation.machine import Machine
from tests.unit.log.logs import NOW, everything, names, on_loop, one_batch, open_log, put, read, segment_path, topic

small = topic(segment_bytes=1024)
FOLDER = "/data/p"


async def filled(log: Log, first: int = 0, count: int = 12) -> Log:
    """Append batches with producers, epochs and voters: all the state that a discard must reset."""
    for number in range(first, first + count):
        put(log, one_batch([b"%03d" % number + b"x" * 200], producer=(7, 0, number)), epoch=1 + number // 5)
    voters = memoryview(voters_batch(voters=[(1, Id(b"1" * 16))], base_offset=0, leader_epoch=0, timestamp=NOW))
    log.append(voters, read_header(voters), log.epochs.last, NOW, internal=True)
    return log


async def damaged(path: Path) -> tuple[Log, RecoveryPoint]:
    log = await filled(await open_log(path, settings=small))
    point = await log.close()
    assert point is not None
    file = segment_path(path, log.segments[-1].base)
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    log = await open_log(path, settings=small, recovery=point)
    assert log.damage is not None
    return log, point


@on_loop
async def test_a_log_that_starts_over_is_like_a_new_one(tmp_path: Path) -> None:
    log, point = await damaged(tmp_path / "p")
    with pytest.raises(StorageFailed, match="damaged"):
        put(log, epoch=9)
    await log.start_over()
    assert (log.damage, log.refusal, log.failed, log.refilling) == (None, None, None, True)
    assert (log.start, log.end, log.durable, log.size_bytes) == (0, 0, 0, 0)
    assert (log.epochs.entries(), len(log.producers), log.voter_sets) == ([], 0, [])
    assert names(tmp_path / "p") == ["refilling", "truncated"]
    with pytest.raises(OffsetOutOfRange):
        await read(log, 5)
    await filled(log)
    fresh = await filled(await open_log(tmp_path / "other", settings=small))
    assert await everything(log) == await everything(fresh)
    assert (log.epochs.entries(), log.voter_sets) == (fresh.epochs.entries(), fresh.voter_sets)
    again = await open_log(tmp_path / "p", settings=small, recovery=point)  # the point of the old log
    assert (again.damage, again.end, again.refilling) == (None, log.end, True)


@pytest.mark.parametrize("begins", [0, 1, 5000])
@pytest.mark.parametrize("fsync", ["always", "never"])
@on_loop
async def test_a_refilled_log_begins_at_the_leaders_log_start(tmp_path: Path, begins: int, fsync: str) -> None:
    log, point = await damaged(tmp_path / "p")
    log = await open_log(tmp_path / "p", settings=small, recovery=point, fsync=fsync)  # type: ignore[arg-type]
    await log.start_over()
    for number in range(8):
        log.append_as_is(one_batch([b"y" * 300], base_offset=begins + number, epoch=3), NOW)
    await log.flush()
    assert (log.start, log.end, log.durable) == (begins, begins + 8, begins + 8)
    assert len(await everything(log)) == 8
    for recovery in (point, None):  # before the next point is recorded, and when the checkpoint file is lost
        again = await open_log(tmp_path / "p", settings=small, recovery=recovery)
        assert (again.damage, again.start, again.end) == (None, begins, begins + 8)


@pytest.mark.parametrize("begins", [0, 7])
@on_loop
async def test_a_new_follower_begins_where_its_leader_does(tmp_path: Path, begins: int) -> None:
    log = await open_log(tmp_path / "p", settings=small, fsync="always")
    if begins:
        await log.truncate_fully_and_start_at(begins + 2)  # the leader's log start lies within a batch
    log.append_as_is(one_batch([b"a", b"b", b"c"], base_offset=begins, epoch=3), NOW)
    await log.flush()
    assert (log.start, log.end, log.durable) == (begins, begins + 3, begins + 3)
    await log.advance_start(begins + 2)
    point = await log.close()
    log = await open_log(tmp_path / "p", settings=small, recovery=point, clean=True)
    assert (log.damage, log.start, log.end) == (None, begins + 2, begins + 3)
    log.append_as_is(one_batch([b"d"], base_offset=begins + 3, epoch=3), NOW)
    assert [record.offset for record in await everything(log)] == [begins + 2, begins + 3]


@on_loop
async def test_a_log_is_refilling_until_it_is_complete(tmp_path: Path) -> None:
    log, _ = await damaged(tmp_path / "p")
    await log.start_over()
    await filled(log, count=3)
    later = await log.close()
    log = await open_log(tmp_path / "p", settings=small, recovery=later, clean=True)
    assert log.refilling
    await filled(log, first=3)
    await log.refilled()
    assert not log.refilling
    for _ in range(2):
        later = await log.checkpoint()
        assert later is not None
        log.recorded(later)
    await log.checkpoint()
    assert not {"refilling", "truncated"} & {*names(tmp_path / "p")}
    log = await open_log(tmp_path / "p", settings=small, recovery=later)
    assert (log.damage, log.refilling, log.end) == (None, False, 17)
    await log.refilled()  # a second call changes nothing


@pytest.mark.parametrize("restarted", [False, True])
@on_loop
async def test_the_truncation_mark_is_removed_when_a_later_point_is_recorded(tmp_path: Path, restarted: bool) -> None:
    log, point = await damaged(tmp_path / "p")
    await log.start_over()
    if restarted:
        await log.close()
        log = await open_log(tmp_path / "p", settings=small, recovery=point, clean=True)
        assert (log.damage, log.end) == (None, 0)
    await filled(log)
    for _ in range(2):
        assert "truncated" in names(tmp_path / "p")
        later = await log.checkpoint()
        assert later is not None
        log.recorded(later)
    assert "truncated" not in names(tmp_path / "p")


@on_loop
async def test_a_log_whose_folder_is_missing_starts_over_too(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p", recovery=RecoveryPoint(offset=10))
    assert log.damage is not None
    await log.start_over()
    put(log)
    log = await open_log(tmp_path / "p", recovery=RecoveryPoint(offset=10))
    assert (log.damage, log.end, log.refilling) == (None, 1, True)


@on_loop
async def test_an_unreadable_refilling_file_empties_the_log(tmp_path: Path) -> None:
    log, point = await damaged(tmp_path / "p")
    (tmp_path / "p" / "refilling").write_bytes(b"")
    log = await open_log(tmp_path / "p", settings=small, recovery=point)
    assert (log.damage, log.end, log.refilling) == (None, 0, True)
    assert names(tmp_path / "p") == ["refilling", "truncated"]


async def opened(machine: Machine, point: RecoveryPoint | None) -> Log:
    ports = machine.boot()
    await make_lasting_dir(ports.disk, "/data")
    return await open_log(FOLDER, settings=small, fsync="always", recovery=point, ports=ports)


async def crash_during_start_over(world: World, operation: int, *, power_loss: bool) -> str:
    machine = world.machine("broker")
    log = await filled(await opened(machine, None))
    point = await log.close()
    assert point is not None
    machine.storage.flip_bit(f"{FOLDER}/{log.segments[-1].base:020d}.log", 100)
    machine.crash(power_loss=False)
    log = await opened(machine, point)
    assert log.damage is not None
    found = (len(log.segments), log.size_bytes, log.damage)
    machine.crash_at_operation(operation, power_loss=power_loss)
    try:
        await machine.run(log.start_over())
    except Crashed:
        log = await opened(machine, point)
        if log.damage is not None:
            assert (len(log.segments), log.size_bytes, log.damage) == found
            return "damaged"
    else:
        return "finished"
    assert (log.end, log.refilling, log.voter_sets, log.epochs.last) == (0, True, [], -1)
    await filled(log, count=2)
    await log.flush()
    machine.crash(power_loss=True)
    log = await opened(machine, point)
    assert (log.damage, log.end, log.refilling) == (None, 3, True)
    return "empty"


@pytest.mark.parametrize("power_loss", [False, True])
def test_a_crash_leaves_the_damaged_log_or_an_empty_one(power_loss: bool) -> None:
    outcomes: list[str] = []
    while "finished" not in outcomes:
        with World(len(outcomes)) as world:
            outcomes.append(
                world.run(crash_during_start_over(world, len(outcomes) + 1, power_loss=power_loss)),
            )
    assert [*dict.fromkeys(outcomes)] == ["damaged", "empty", "finished"]
    assert len(outcomes) > 20


@pytest.mark.parametrize("whole", [False, True])
@on_loop
async def test_the_voters_survive_when_a_log_is_discarded(tmp_path: Path, whole: bool) -> None:
    """The leader's log may begin after the batch that set them."""
    log, point = await damaged(tmp_path / "p")
    voters = log.voter_sets[-1][1]
    await log.start_over()
    again = await open_log(tmp_path / "p", settings=small, recovery=point)
    assert (again.refilling, again.voters_before, again.voter_sets) == (True, voters, [])
    again.append_as_is(one_batch([b"y" * 300], base_offset=5000, epoch=3), NOW)
    if whole:
        await again.refilled()
    last = await open_log(tmp_path / "p", settings=small, recovery=await again.close())
    assert (last.refilling, last.damage) == (not whole, None)
    assert (last.voters_before, last.voter_sets) == (((), [(4999, voters)]) if whole else (voters, []))


@on_loop
async def test_voters_set_during_the_refill_win(tmp_path: Path) -> None:
    log, _ = await damaged(tmp_path / "p")
    await log.start_over()
    await filled(log)
    named = list(log.voter_sets)
    await log.refilled()
    last = await open_log(tmp_path / "p", settings=small, recovery=await log.close())
    assert named
    assert (last.voters_before, last.voter_sets) == ((), named)


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@on_loop
async def test_a_log_that_is_set_aside_is_kept_until_the_refill_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "p"
    log = await filled(await open_log(path, settings=small))
    await log.raise_horizon(5)
    await log.flush()
    before = content(path)
    await log.start_over(keep_aside=True)
    assert (log.end, log.horizon, log.refilling) == (0, 0, True)
    assert content(path / "aside") == before
    await filled(log, count=3)
    await log.start_over(keep_aside=True)  # what was fetched meanwhile is not worth keeping
    assert content(path / "aside") == before
    log = await open_log(path, settings=small)
    assert (log.end, log.refilling) == (0, True)
    assert content(path / "aside") == before
    await filled(log)
    await log.refilled()
    assert not (path / "aside").exists()
    assert not (path / "refilling").exists()


def stored(machine: Machine, folder: str) -> dict[str, bytes]:
    """The segments in a folder."""
    files = {path.rpartition("/"): bytes(file.visible) for path, file in machine.storage.tree.files()}
    return {name: data for (where, _, name), data in files.items() if where == folder and name.endswith(".log")}


async def crash_while_setting_aside(world: World, operation: int, *, power_loss: bool) -> str:
    machine = world.machine("broker")
    log = await filled(await opened(machine, None))
    await log.flush()
    segments, end = stored(machine, FOLDER), log.end
    machine.crash_at_operation(operation, power_loss=power_loss)
    try:
        await machine.run(log.start_over(keep_aside=True))
    except Crashed:
        log = await opened(machine, None)
        if not log.refilling:
            assert (stored(machine, FOLDER), log.end) == (segments, end)
            return "whole"
    else:
        return "finished"
    assert (log.end, stored(machine, f"{FOLDER}/aside")) == (0, segments)
    return "aside"


@pytest.mark.parametrize("power_loss", [False, True])
def test_a_crash_leaves_the_whole_log_or_all_of_it_aside(power_loss: bool) -> None:
    outcomes: list[str] = []
    while "finished" not in outcomes:
        with World(len(outcomes)) as world:
            outcomes.append(world.run(crash_while_setting_aside(world, len(outcomes) + 1, power_loss=power_loss)))
    assert [*dict.fromkeys(outcomes)] == ["whole", "aside", "finished"]
