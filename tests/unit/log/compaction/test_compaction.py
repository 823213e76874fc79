"""A pass over a log: what it replaces, what it leaves, and what a crash or a full disk leaves behind."""

import asyncio
import errno
import os
import random
import signal
from pathlib import Path
from typing import Any

import pytest

from tailrace.log.compaction.cleaner import Cleaner
from tailrace.log.compaction.compaction import Abandoned, Compacted, compact
from tailrace.log.compaction.segment_choice import Choice, choose
from tailrace.log.log import Log, RecoveryPoint
from tailrace.model.faults import StaleProducerEpoch
from tailrace.ports import Ports, system_ports
from tailrace.ports.disk import make_lasting_dir
from tailrace.ports.offload import Session, WorkerLost
from tailrace.ports.worker_process import WorkerProcess
from tailrace.records.build import build_batch
from tailrace.records.control import marker_batch
from tailrace.records.header import read_header
from tailrace.records.record import NewRecord
from tailrace.testing.simulation import World
from tests.unit.log.compaction.naive_cleaner import NaiveCleaner
from tests.unit.log.logs import NOW, everything, names, on_loop, open_log, put, read, topic, trouble

small = topic(segment_bytes=1024, index_interval_bytes=150, cleanup_policy="compact", min_cleanable_dirty_ratio="0.1")
FOLDER = "/data/p"


def update(key: int, value: int, time: int = NOW) -> memoryview:
    return memoryview(build_batch([NewRecord(key=b"k%d" % key, value=b"%040d" % value, timestamp=time)]))


async def no_throttle(_: int) -> None:
    pass


async def filled(log: Log, count: int = 100, keys: int = 5) -> RecoveryPoint:
    for number in range(count):
        put(log, update(number % keys, number, NOW + number))
    point = await log.checkpoint()
    assert point is not None
    log.recorded(point)
    return point


async def chosen(log: Log) -> Choice:
    choice = await choose(log, log.end, NOW)
    assert choice is not None
    return choice


async def run_pass(log: Log, cleaner: NaiveCleaner | None = None) -> Compacted:
    return await compact(log, await chosen(log), cleaner or NaiveCleaner(), no_throttle, lambda: log.horizon)


async def table(log: Log) -> dict[bytes | None, tuple[int, bytes | None]]:
    return {record.key: (record.offset, record.value) for record in await everything(log)}


@on_loop
async def test_the_last_value_of_each_key_stays_with_its_offset(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p", settings=small)
    point = await filled(log)
    before, size, end = await table(log), log.size_bytes, log.end
    done = await run_pass(log)
    assert done.upto == log.segments[-1].base == log.clean.clean_to
    assert log.size_bytes < size / 3
    assert len(log.segments) < 5
    assert (await table(log), log.end) == (before, end)
    found = await log.offset_for_time(NOW, log.end)
    assert found is not None
    assert found.offset == (await everything(log))[0].offset
    for offset in range(log.end):
        assert (await read(log, offset))[1] > offset
    assert await choose(log, log.end, NOW) is None
    await log.close()
    again = await open_log(tmp_path / "p", settings=small, recovery=point, clean=False)
    assert (await table(again), again.end, again.clean) == (before, end, log.clean)
    assert not [name for name in names(tmp_path / "p") if "cleaned" in name or name == "compacted"]


@on_loop
async def test_a_full_map_takes_several_passes(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p", settings=small)
    await filled(log, 200, keys=20)
    before, passes = await table(log), 0
    while await choose(log, log.end, NOW) is not None:
        done = await run_pass(log, NaiveCleaner(keys_max=11))
        passes += 1
        assert done.upto == log.clean.clean_to
        assert await table(log) == before
    assert passes > 2
    assert log.clean.clean_to == log.segments[-1].base


@on_loop
async def test_only_closed_segments_below_the_bound_are_chosen(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p", settings=small)
    await filled(log)
    bound = log.segments[3].base
    for limit, count in ((bound, 3), (bound - 1, 2), (bound + 1, 3), (log.end, len(log.segments) - 1)):
        choice = await choose(log, limit, NOW)
        assert choice is not None
        assert len(choice.segments) == count
    log.recorded_offset = bound
    assert len((await chosen(log)).segments) == 3
    log.use(topic(segment_bytes=1024, cleanup_policy="compact", min_compaction_lag_ms=50))
    choice = await choose(log, log.end, NOW + 80)
    assert choice is not None
    assert choice.end <= 31


@on_loop
async def test_a_log_is_due_by_its_ratio_or_its_age(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p", settings=small)
    await filled(log)
    await run_pass(log)
    await filled(log, 20)
    log.use(topic(segment_bytes=1024, cleanup_policy="compact", min_cleanable_dirty_ratio="0.99"))
    assert await choose(log, log.end, NOW) is None
    log.use(topic(cleanup_policy="compact", min_cleanable_dirty_ratio="0.99", max_compaction_lag_ms=1000))
    assert await choose(log, log.end, NOW + 900) is None
    overdue = await choose(log, log.end, NOW + 3000)
    assert overdue is not None
    assert overdue.overdue


@on_loop
async def test_a_full_disk_leaves_the_old_segments_and_nothing_else(tmp_path: Path) -> None:
    disk, ports = trouble()
    log = await open_log(tmp_path / "p", settings=small, ports=ports)
    await filled(log)
    before, files = await table(log), names(tmp_path / "p")
    original = type(disk.open(str(tmp_path / "x"))).write

    def no_room(file: object, data: bytes, position: int) -> None:
        if str(getattr(file, "path", "")).endswith(".cleaned"):
            raise OSError(errno.ENOSPC, "No space left on device")
        original(file, data, position)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.unit.log.logs.TroubleFile.write", no_room)
        with pytest.raises(OSError, match="No space left"):
            await run_pass(log)
    assert (await table(log), names(tmp_path / "p"), log.refusal) == (before, files, None)
    await run_pass(log)
    assert await table(log) == before


@pytest.mark.parametrize("method", ["survey", "clean"])
@on_loop
async def test_a_pass_whose_worker_process_is_killed_leaves_the_log_as_it_was(tmp_path: Path, method: str) -> None:
    ports = system_ports()
    log = await open_log(tmp_path / "p", settings=small, ports=ports)
    await filled(log)
    before, files = await table(log), names(tmp_path / "p")
    for is_killed in (True, False):
        session = ports.offload.session(Cleaner, 1 << 20, b"secret")
        killing = Killing(session, method) if is_killed else session
        passing = compact(log, await chosen(log), killing, no_throttle, lambda: log.horizon)
        if is_killed:
            with pytest.raises(WorkerLost, match="exit code -9"):
                await passing
            assert (names(tmp_path / "p"), log.refusal) == (files, None)
        else:
            assert (await passing).upto == log.segments[-1].base
        session.close()
        assert await table(log) == before
    ports.offload.close()


class Killing:
    """A session whose worker process is killed when this method is called for the second time."""

    def __init__(self, session: Session, method: str) -> None:
        assert isinstance(session, WorkerProcess)
        self._session = session
        self._method = method
        self._calls = 0

    def call(self, method: str, *arguments: object, **named: object) -> "asyncio.Future[Any]":
        self._calls += method == self._method
        if self._calls == 2 and self._session.pid is not None:
            os.kill(self._session.pid, signal.SIGKILL)
        return self._session.call(method, *arguments, **named)

    def close(self) -> None:
        self._session.close()


@on_loop
async def test_a_replica_of_a_compacted_log_knows_the_epochs_of_producers(tmp_path: Path) -> None:
    """A marker of transactions v2 (KIP-890) has an epoch that no batch has yet: batches of earlier ones are fenced."""
    ports = system_ports()
    at_once = topic(
        segment_bytes=1024, cleanup_policy="compact", min_cleanable_dirty_ratio="0.01", delete_retention_ms=0
    )
    log = await open_log(tmp_path / "p", settings=at_once, ports=ports)
    put(log, memoryview(transactional(producer=7)))
    ending = memoryview(
        marker_batch(committed=True, producer_id=7, producer_epoch=1, coordinator_epoch=0, timestamp=NOW)
    )
    log.append(ending, read_header(ending), 1, NOW, internal=True)
    for _ in range(2):  # the second pass may remove what the first one has covered
        await filled(log)
        session = ports.offload.session(Cleaner, 1 << 20, b"secret")
        await compact(log, await chosen(log), session, no_throttle, lambda: log.horizon)
        session.close()
        await log.raise_horizon(log.clean.clean_to)
    follower = await open_log(tmp_path / "q", settings=at_once, ports=ports)
    while follower.end < log.end:
        data, _ = await read(log, follower.end)
        follower.append_as_is(memoryview(bytearray(data)), NOW)
    known = follower.producers.get(7)
    assert known is not None
    assert known.epoch == 1
    with pytest.raises(StaleProducerEpoch):
        put(follower, memoryview(transactional(producer=7)))
    ports.offload.close()


def transactional(producer: int) -> bytearray:
    return build_batch(
        [NewRecord(key=b"k0", value=b"v", timestamp=NOW)],
        producer_id=producer,
        producer_epoch=0,
        base_sequence=0,
        transactional=True,
    )


@on_loop
async def test_a_pass_is_given_up_when_its_segments_are_removed(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p", settings=small)
    await filled(log)
    choice = await chosen(log)
    passing = asyncio.ensure_future(compact(log, choice, NaiveCleaner(), no_throttle, lambda: log.horizon))
    await asyncio.sleep(0)
    await log.advance_start(log.segments[2].base)
    before = await table(log)
    with pytest.raises(Abandoned):
        await passing
    assert await table(log) == before
    assert not [name for name in names(tmp_path / "p") if name.endswith(".cleaned")]
    await run_pass(log)
    assert await table(log) == before


@on_loop
async def test_reads_that_began_before_the_swap_go_on(tmp_path: Path) -> None:
    disk, ports = trouble()
    log = await open_log(tmp_path / "p", settings=small, ports=ports)
    await filled(log)
    before = await table(log)
    disk.cold = True
    passing = asyncio.ensure_future(run_pass(log))
    while not passing.done():
        assert await table(log) == before
        found = await log.offset_for_time(NOW + 99, log.end)
        assert found is not None
        assert found.offset == 99
    assert (await passing).bytes_after < (await passing).bytes_before
    assert await table(log) == before


def test_a_power_cut_at_any_time_leaves_the_old_or_the_new_segments() -> None:
    outcomes: dict[bool, int] = {}
    for seed in range(60):
        with World(seed) as world:
            compacted = world.run(cut_during_a_pass(world, seed))
            outcomes[compacted] = outcomes.get(compacted, 0) + 1
    assert min(outcomes.get(True, 0), outcomes.get(False, 0)) > 3, outcomes


async def opened(ports: Ports, recovery: RecoveryPoint | None = None) -> Log:
    await make_lasting_dir(ports.disk, "/data")
    return await open_log(FOLDER, settings=small, fsync="always", recovery=recovery, ports=ports)


async def cut_during_a_pass(world: World, seed: int) -> bool:
    machine, rng = world.machine("broker"), random.Random(seed)
    log = await opened(machine.boot())
    point = await filled(log, 60)
    before, size = await table(log), log.size_bytes
    passing = asyncio.ensure_future(run_pass(log))
    if seed % 2:
        await asyncio.wait([passing], timeout=rng.uniform(0, 0.3))
    else:
        while not log.swapping:  # in the middle of replacing files
            await asyncio.wait([passing], timeout=0.0001)
    machine.crash(power_loss=True)
    passing.cancel()
    await asyncio.gather(passing, return_exceptions=True)
    for _ in range(2):
        log = await opened(machine.boot(), point)
        assert log.damage is None
        assert (await table(log), log.end) == (before, 60)
        machine.crash(power_loss=True)
    log = await opened(machine.boot(), point)
    log.recorded(point)
    smaller = log.size_bytes < size
    if await choose(log, log.end, NOW) is not None:
        await run_pass(log)
    assert await table(log) == before
    assert not [name for name in log.ports.disk.names(FOLDER) if name.endswith(".cleaned")]
    return smaller
