"""Voter sets of a log: through appends, restarts, truncations, retention, full disks and power cuts."""

import random
from pathlib import Path

import pytest

from tailrace.log.log import Log, RecoveryPoint
from tailrace.model.faults import CorruptBatch, StorageFailed
from tailrace.model.ids import Id
from tailrace.ports.disk import make_lasting_dir
from tailrace.records.build import build_batch
from tailrace.records.control import VotersChange, leader_change_batch, read_control, voters_batch
from tailrace.records.header import read_header
from tailrace.records.opened import batches
from tailrace.records.record import NewRecord
from tailrace.testing.simulation import World
from tailrace.testing.simulation.failures import Crashed
from tailrace.testing.simulation.machine import Machine
from tests.unit.log.logs import NOW, names, on_loop, one_batch, open_log, put, read, topic, trouble

ONE, TWO, THREE = (1, Id(b"1" * 16)), (2, Id(b"2" * 16)), (3, Id(b"3" * 16))
small = topic(segment_bytes=1024, retention_ms=60_000)


def voters_record(*voters: tuple[int, Id], base_offset: int = 0, epoch: int = 1, timestamp: int = NOW) -> memoryview:
    batch = voters_batch(voters=voters, base_offset=base_offset, leader_epoch=epoch, timestamp=timestamp)
    return memoryview(batch)


def set_voters(log: Log, *voters: tuple[int, Id], epoch: int = 1, timestamp: int = NOW) -> int:
    batch = voters_record(*voters, timestamp=timestamp)
    return log.append(batch, read_header(batch), epoch, NOW, internal=True).base_offset


def voter_files(folder: Path) -> list[str]:
    return [name for name in names(folder) if name.endswith(".voters")]


async def voters_in_batches(log: Log) -> list[tuple[int, object]]:
    """The voter sets as all the batches give them."""
    found: list[tuple[int, object]] = []
    offset = log.start
    while offset < log.end:
        data, offset = await read(log, offset)
        for batch, header in batches(data):
            said = read_control(batch)
            if isinstance(said, VotersChange):
                found.append((header.base_offset, said.voters))
    return found


@on_loop
async def test_leader_and_follower_keep_the_voters_they_append(tmp_path: Path) -> None:
    leader, follower = await open_log(tmp_path / "l"), await open_log(tmp_path / "f")
    set_voters(leader, ONE)  # makes the folder
    put(leader)
    change = leader_change_batch(leader=1, voters=(1,), granting=(1,), base_offset=0, leader_epoch=2, timestamp=NOW)
    leader.append(memoryview(change), read_header(change), 2, NOW, internal=True)
    set_voters(leader, ONE, TWO, epoch=2)
    assert leader.voter_sets == [(0, (ONE,)), (3, (ONE, TWO))]
    data, _ = await read(leader, 0)
    follower.append_as_is(memoryview(data), NOW)
    assert follower.voter_sets == leader.voter_sets


@pytest.mark.parametrize("clean", [False, True])
@pytest.mark.parametrize("pointed", [0, 1, 2, 3])
@on_loop
async def test_a_restart_loads_the_voters(tmp_path: Path, pointed: int, clean: bool) -> None:
    log = await open_log(tmp_path / "p", settings=small)
    point = None
    for number in range(3):
        put(log, one_batch([b"x" * 700]))
        set_voters(log, *(ONE, TWO, THREE)[: number + 1])
        if number + 1 == pointed:
            point = await log.checkpoint()
    if clean:
        point = await log.close()
    again = await open_log(tmp_path / "p", settings=small, recovery=point, clean=clean)
    assert again.voter_sets == [(1, (ONE,)), (3, (ONE, TWO)), (5, (ONE, TWO, THREE))] == await voters_in_batches(again)
    assert len(voter_files(tmp_path / "p")) == 3


@on_loop
async def test_above_the_recovery_point_the_batches_are_the_truth(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p")
    set_voters(log, ONE)
    point = await log.checkpoint()
    for voters in ((TWO,), (THREE,)):
        set_voters(log, *voters)
    put(log)
    (tmp_path / "p" / f"{1:020d}.voters").unlink()
    (tmp_path / "p" / f"{2:020d}.voters").write_bytes(b"torn")
    for offset in (3, 4, 7):  # at a batch without voters, at the log end, and beyond it
        (tmp_path / "p" / f"{offset:020d}.voters").write_bytes((tmp_path / "p" / f"{0:020d}.voters").read_bytes())
    right = [(0, (ONE,)), (1, (TWO,)), (2, (THREE,))]
    log = await open_log(tmp_path / "p", recovery=point)
    assert log.voter_sets == right
    assert voter_files(tmp_path / "p") == [f"{offset:020d}.voters" for offset in range(3)]
    point = await log.close()
    log = await open_log(tmp_path / "p", recovery=point, clean=True)
    assert log.voter_sets == right


@on_loop
async def test_below_the_recovery_point_a_bad_file_is_rebuilt(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p", settings=small)
    for voters in ((ONE,), (TWO,)):
        set_voters(log, *voters)
        put(log, one_batch([b"x" * 900]))
    point = await log.close()
    file = tmp_path / "p" / f"{2:020d}.voters"
    good = file.read_bytes()
    file.write_bytes(good.replace(b"2 ", b"3 "))
    log = await open_log(tmp_path / "p", settings=small, recovery=point, clean=True)
    assert (log.damage, log.voter_sets) == (None, [(0, (ONE,)), (2, (TWO,))])
    assert file.read_bytes() == good


@on_loop
async def test_voters_that_neither_file_nor_batch_has_are_damage(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p", settings=small)
    put(log)
    set_voters(log, ONE)
    put(log, one_batch([b"x" * 1000]))
    await log.advance_start(2)
    assert [segment.base for segment in log.segments] == [2]
    point = await log.close()
    (tmp_path / "p" / f"{1:020d}.voters").write_bytes(b"")
    log = await open_log(tmp_path / "p", settings=small, recovery=point, clean=True)
    assert log.damage is not None
    assert log.damage.reason.startswith("the voters from this offset on cannot be read")
    assert log.damage.file.endswith(f"{1:020d}.voters")


@on_loop
async def test_a_truncation_restores_the_earlier_voters(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p", fsync="always")
    for voters in ((ONE,), (ONE, TWO), (ONE, TWO, THREE)):
        set_voters(log, *voters)
        put(log)
    await log.truncate_to(4)
    assert log.voter_sets == [(0, (ONE,)), (2, (ONE, TWO))]
    await log.truncate_to(2)
    for _ in range(3):
        put(log, epoch=2)
    assert log.voter_sets == [(0, (ONE,))]
    point = await log.close()
    log = await open_log(tmp_path / "p", recovery=point, clean=True)
    assert log.voter_sets == [(0, (ONE,))]


@on_loop
async def test_files_removed_by_a_truncation_are_not_fsynced(tmp_path: Path) -> None:
    disk, ports = trouble()
    log = await open_log(tmp_path / "p", ports=ports)
    put(log)
    set_voters(log, ONE)
    put(log)
    await log.truncate_to(1)
    for file in list(disk._open):
        file.close_descriptor()
    await log.flush()
    assert log.failed is None
    assert names(tmp_path / "p") == [f"{0:020d}.log"]


@on_loop
async def test_a_voters_file_without_a_segment_is_ignored(tmp_path: Path) -> None:
    """A power cut left the voters file, but not the segment."""
    log = await open_log(tmp_path / "p")
    set_voters(log, ONE)
    (tmp_path / "p" / f"{0:020d}.log").unlink()
    log = await open_log(tmp_path / "p")
    assert log.voter_sets == []
    put(log)
    point = await log.close()
    assert (await open_log(tmp_path / "p", recovery=point, clean=True)).voter_sets == []


@on_loop
async def test_a_refused_batch_sets_no_voters(tmp_path: Path) -> None:
    disk, ports = trouble()
    log = await open_log(tmp_path / "p", ports=ports)
    put(log)
    disk.room_bytes = 20
    with pytest.raises(StorageFailed, match="full"):
        set_voters(log, ONE)
    assert (log.voter_sets, voter_files(tmp_path / "p")) == ([], [])
    disk.room_bytes = None
    put(log)  # at the offset of the refused batch
    point = await log.close()
    log = await open_log(tmp_path / "p", recovery=point, clean=True)
    assert log.voter_sets == []
    assert set_voters(log, ONE) == 2
    assert log.voter_sets == [(2, (ONE,))]


@on_loop
async def test_retention_keeps_the_voters_in_force(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p", settings=small)
    for voters in ((ONE,), (ONE, TWO), (ONE, TWO, THREE)):
        set_voters(log, *voters, timestamp=NOW - 120_000)
        put(log, one_batch([b"x" * 900], timestamps=[NOW - 120_000]))
    put(log, one_batch([b"x" * 900]))
    kept: list[object] = []
    for start in (1, 2, 4, 6):
        await log.advance_start(start)
        kept.append([offset for offset, _ in log.voter_sets])
    assert kept == [[0, 2, 4], [2, 4], [4], [4]]
    await log.retain(NOW, log.end)
    assert log.segments[0].base == 6
    point = await log.close()
    log = await open_log(tmp_path / "p", settings=small, recovery=point, clean=True)
    assert log.voter_sets == [(4, (ONE, TWO, THREE))]
    await log.truncate_fully_and_start_at(100)
    put(log, epoch=2)
    log = await open_log(tmp_path / "p", settings=small)
    assert (log.start, log.end, log.voter_sets) == (100, 101, [(4, (ONE, TWO, THREE))])


@on_loop
async def test_a_garbled_voters_batch_is_refused(tmp_path: Path) -> None:
    garbled = NewRecord(key=bytes.fromhex("0000 0006"), value=b"\0\0\2abc", timestamp=NOW)
    batch = memoryview(build_batch([garbled], base_offset=1, leader_epoch=1, control=True))
    log = await open_log(tmp_path / "p")
    put(log)
    with pytest.raises(CorruptBatch, match="garbled"):
        log.append_as_is(batch, NOW)
    assert log.end == 1
    with (tmp_path / "p" / f"{0:020d}.log").open("ab") as file:
        file.write(batch)
    assert (await open_log(tmp_path / "p")).end == 1


class Process:
    """Random operations on a log, in any order, until the power fails."""

    def __init__(self, machine: Machine, chance: random.Random) -> None:
        self._machine = machine
        self._chance = chance
        self.point: RecoveryPoint | None = None
        self.epoch = 1

    async def opened(self) -> Log:
        ports = self._machine.boot()
        await make_lasting_dir(ports.disk, "/data")
        return await open_log("/data/p", settings=small, fsync="always", recovery=self.point, ports=ports)

    async def work(self, log: Log) -> None:
        for _ in range(40):
            match self._chance.choice(["voters", "voters", "put", "put", "flush", "truncate", "checkpoint", "nothing"]):
                case "voters":
                    set_voters(log, (self._chance.randrange(9), ONE[1]), epoch=self.epoch)
                case "put":
                    put(log, one_batch([b"x" * self._chance.choice([1, 500])]), epoch=self.epoch)
                case "flush":
                    await log.flush()
                case "truncate":
                    await log.truncate_to(max(log.end - self._chance.randrange(1, 4), 0))
                    self.epoch += 1
                case "checkpoint":
                    point = await log.checkpoint()
                    if point is not None and self._chance.random() < 0.7:
                        self.point = point
                        log.recorded(point)
            assert log.voter_sets == await voters_in_batches(log)


async def power_cuts(world: World, seed: int) -> None:
    chance = random.Random(seed)
    machine = world.machine("broker")
    process = Process(machine, chance)
    for _ in range(6):
        log = await process.opened()
        assert log.damage is None
        assert log.voter_sets == await voters_in_batches(log)
        process.epoch = max(process.epoch, log.epochs.last) + 1
        machine.crash_at_operation(chance.randrange(1, 80), power_loss=chance.random() < 0.7)
        try:
            await machine.run(process.work(log))
        except Crashed:
            continue
        machine.storage.forget_operation()
        machine.crash(power_loss=True)


@pytest.mark.parametrize("seed", range(40))
def test_power_cuts_leave_the_voters_that_the_batches_set(seed: int) -> None:
    with World(seed) as world:
        world.run(power_cuts(world, seed))
