"""A pass that is interrupted before, or during, each of its operations of the disk, one after the other.

The log has tombstones, transactions of both kinds and batches of all codecs; the model is that of `test_compacted_log`.
Whatever interrupts a pass, the log shows what it must, now and after a start, and the next pass finishes the work.
"""

import asyncio
import random
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import Context
from typing import Any, Final

import pytest

from tailrace.log.log import Log, RecoveryPoint
from tailrace.model.faults import StorageFailed
from tailrace.ports.disk import make_lasting_dir
from tailrace.records.build import build_batch
from tailrace.records.compress import COMPRESSIONS
from tailrace.records.control import marker_batch
from tailrace.records.header import read_header
from tailrace.records.record import NewRecord
from tailrace.testing.simulation import Machine, World, storage
from tailrace.testing.simulation.failures import Crashed
from tailrace.testing.simulation.randomness import Odds
from tests.properties.compacted_log import History, check, compact_once, data_records, stored
from tests.unit.log.logs import open_log, topic

FOLDER: Final = "/data/p"
NEVER: Final = 0
BATCHES: Final = 10  # before, and after the first pass
STEPS_MIN: Final = 20
STEPS_MAX: Final = 1000
KEYS: Final = (b"a", b"b", b"c", b"d")
small = topic(
    segment_bytes=1024,
    index_interval_bytes=150,
    cleanup_policy="compact",
    min_cleanable_dirty_ratio="0.01",
    delete_retention_ms=0,
)


class Steps:
    """Counts the operations of a disk, and calls `interrupt` with the path at the one with the number `at`.

    That is just before a change of a file or folder, and just before an fsync, or else when it has begun.
    """

    def __init__(
        self,
        machine: Machine,
        at: int,
        interrupt: Callable[[str], object],
        *,
        before_fsync: bool = False,
        fsyncs_only: bool = False,
    ) -> None:
        self.count = 0
        self._at = at
        self._interrupt = interrupt
        self._before_fsync = before_fsync
        self._fsyncs_only = fsyncs_only
        storage = self._storage = machine.storage
        self._change, self._sync, self._sync_dir = storage.before_change, storage.sync, storage.sync_dir
        setattr(storage, "before_change", self._counted_change)  # noqa: B010
        setattr(storage, "sync", lambda content, path, done: self._counted(path, self._sync, content, path, done))  # noqa: B010
        setattr(storage, "sync_dir", lambda path, done: self._counted(path, self._sync_dir, path, done))  # noqa: B010

    def end(self) -> None:
        for name in ("before_change", "sync", "sync_dir"):
            delattr(self._storage, name)

    def _counted_change(self) -> None:
        if not self._fsyncs_only:
            self.count += 1
            if self.count == self._at:
                self._interrupt("")
        self._change()

    def _counted(self, path: str, fsync: Callable[..., None], *arguments: object) -> None:
        self.count += 1
        if self.count == self._at and self._before_fsync:
            self._interrupt(path)
        fsync(*arguments)
        if self.count == self._at and not self._before_fsync:
            self._storage.loop.call_soon(self._interrupt, path, context=Context())


class Interrupted:
    """A log in the middle of its life, and one pass over it."""

    def __init__(self, world: World) -> None:
        self.machine = world.machine("broker")
        self.history = History()
        self.point: RecoveryPoint | None = None

    async def open(self) -> Log:
        ports = self.machine.boot()

        async def opened() -> Log:
            await make_lasting_dir(ports.disk, "/data")
            return await open_log(FOLDER, settings=small, fsync="always", recovery=self.point, ports=ports)

        return await self.machine.run(opened())

    async def prepare(self) -> Log:
        """The first half is compacted, and its tombstones and markers may go."""
        log = await self.open()
        await self.machine.run(self._write(log, random.Random(1)))
        await self.machine.run(self.finish(log))
        await self.machine.run(log.raise_horizon(log.clean.clean_to))
        await self.machine.run(self._write(log, random.Random(2)))
        return log

    async def _write(self, log: Log, rng: random.Random) -> None:
        for number in range(BATCHES):
            producer, transactional = rng.choice(((-1, False), (7, False), (8, True), (9, True)))
            records = [
                NewRecord(rng.choice((None, rng.randbytes(40))), rng.choice(KEYS), timestamp=number)
                for _ in range(rng.randint(1, 4))
            ]
            identified = producer >= 0
            batch = build_batch(
                [*records, NewRecord(rng.randbytes(30), b"only %d" % log.end if number % 3 == 0 else b"a")],
                compression=rng.choice(COMPRESSIONS),
                producer_id=producer,
                producer_epoch=0 if identified else -1,
                base_sequence=self.history.next_sequence(producer) if identified else -1,
                transactional=transactional,
            )
            self._append(log, batch)
            for ending in [one for one in self.history.open if number == BATCHES - 1 or rng.random() < 0.3]:
                self._append(
                    log,
                    marker_batch(
                        committed=rng.random() < 0.5,
                        producer_id=ending,
                        producer_epoch=0,
                        coordinator_epoch=0,
                        timestamp=number,
                    ),
                )
        await self.save(log)

    def _append(self, log: Log, batch: bytearray) -> None:
        log.append(memoryview(batch), read_header(batch), 1, log.ports.clock.wall_ms(), internal=True)
        self.history.add(bytes(batch))

    async def save(self, log: Log) -> None:
        self.point = await log.checkpoint()
        assert self.point is not None
        log.recorded(self.point)

    async def compact(self, log: Log) -> None:
        await compact_once(log, log.last_stable(log.durable), log.horizon)

    async def finish(self, log: Log) -> None:
        """Whatever was interrupted before, passes come to the end, and exactly the right records are left."""
        await check(log, self.history, log.durable)
        while log.clean.clean_to < log.segments[-1].base:
            await self.compact(log)
        await check(log, self.history, log.durable)
        assert not [name for name in log.ports.disk.names(FOLDER) if ".cleaned" in name or name == "compacted"]
        left = [one for one in data_records(await stored(log), log.start) if one.offset < log.clean.clean_to]
        wanted = self.history.survivors(log.start, log.clean.clean_to, log.horizon)
        assert left == wanted


def every_step(play: Callable[[Interrupted, int], Coroutine[Any, Any, int]], stride: int = 1, seeds: int = 1) -> None:
    """Play it with an interruption at each step of a pass, or at each `stride`-th."""

    def played(at: int, seed: int = 0) -> int:
        with World(seed * STEPS_MAX + at, odds=Odds(worker_lost_chance=0.0)) as world:
            return world.run(play(Interrupted(world), at))

    count = played(NEVER)
    assert STEPS_MIN < count < STEPS_MAX, f"a pass has {count} steps"
    for at in range(1, count + 1, stride):
        for seed in range(seeds):
            played(at, seed)


@pytest.mark.parametrize(
    ("power_loss", "fsyncs_only", "stride", "seeds"),
    [(False, False, 3, 1), (True, False, 1, 1), (True, True, 1, 4)],
    ids=["kill", "power", "power-while-fsyncing"],
)
def test_a_crash_at_any_step(
    power_loss: bool, fsyncs_only: bool, stride: int, seeds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut keeps any half of what was not fsynced."""
    monkeypatch.setattr(storage, "SURVIVAL_CHANCES", (0.5,))

    async def play(one: Interrupted, at: int) -> int:
        log = await one.prepare()
        steps = Steps(one.machine, at, lambda _: one.machine.crash(power_loss=power_loss), fsyncs_only=fsyncs_only)
        with suppress(Crashed):
            await one.machine.run(one.compact(log))
            one.machine.crash(power_loss=power_loss)
        steps.end()
        await one.machine.run(one.finish(await one.open()))
        return steps.count

    every_step(play, stride, seeds)


def test_a_stop_of_the_broker_at_any_fsync() -> None:
    """It cancels the pass, closes the log and starts again."""

    async def play(one: Interrupted, at: int) -> int:
        log = await one.prepare()

        async def stop() -> None:
            with suppress(asyncio.CancelledError):
                await passing
            one.point = await log.close()

        passing = one.machine.spawn(one.compact(log))
        steps = Steps(one.machine, at, lambda _: passing.cancel(), fsyncs_only=True)  # where it waits
        await one.machine.run(stop())
        steps.end()
        one.machine.crash(power_loss=False)
        await one.machine.run(one.finish(await one.open()))
        return steps.count

    every_step(play)


def test_a_disk_that_is_full_from_any_step_on() -> None:
    async def play(one: Interrupted, at: int) -> int:
        log = await one.prepare()
        storage = one.machine.storage
        steps = Steps(one.machine, at, lambda _: storage.fill(at % 3, new_names=False), before_fsync=True)
        with suppress(OSError):
            await one.machine.run(one.compact(log))
        steps.end()
        assert log.refusal is None
        await one.machine.run(check(log, one.history, log.durable))
        storage.make_room()
        await one.machine.run(one.finish(log))
        return steps.count

    every_step(play, stride=2)


@pytest.mark.parametrize("power_loss", [False, True])
def test_an_fsync_that_fails_at_any_step(power_loss: bool) -> None:
    """The log may go offline, until a start."""

    async def play(one: Interrupted, at: int) -> int:
        log = await one.prepare()
        storage = one.machine.storage
        steps = Steps(one.machine, at, storage.fail_next_sync, before_fsync=True, fsyncs_only=True)
        with suppress(OSError, StorageFailed):
            await one.machine.run(one.compact(log))
        steps.end()
        if log.failed is None:
            await one.machine.run(check(log, one.history, log.durable))
        one.machine.crash(power_loss=power_loss)
        await one.machine.run(one.finish(await one.open()))
        return steps.count

    every_step(play)
