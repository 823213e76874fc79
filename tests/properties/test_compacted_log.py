"""A compacted log and a follower of it against a naive model, on a simulated disk.

Hypothesis writes records, tombstones and transactions, lets passes run with maps of keys of every size, ends the
process or the power in the middle of any of them, lets retention remove segments, and lets the follower fetch at any
time, and be compacted itself. After every step both logs must show what the model says.
"""

import asyncio
import random
from collections.abc import Awaitable
from contextlib import suppress
from typing import NamedTuple, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tailrace.log.log import Appended, Log, RecoveryPoint
from tailrace.log.writing import roll
from tailrace.ports import Ports
from tailrace.ports.disk import make_lasting_dir
from tailrace.ports.offload import WorkerLost
from tailrace.records.build import build_batch
from tailrace.records.compress import COMPRESSIONS, Compression
from tailrace.records.control import marker_batch
from tailrace.records.header import check_batch, read_header
from tailrace.records.opened import batches
from tailrace.records.record import NewRecord, Record
from tailrace.testing.simulation import World
from tailrace.testing.simulation.failures import Crashed
from tailrace.testing.simulation.randomness import Odds
from tests.properties.compacted_log import ROOM, History, check, compact_once, data_records, stored
from tests.properties.record_strategies import codecs, headers
from tests.unit.log.logs import open_log, put, read, topic

T = TypeVar("T")
KEPT_MS = 20_000  # delete.retention.ms
RETENTION_MS = 60_000
LEADER, FOLLOWER = "/data/leader", "/data/follower"
PRODUCERS = (1, 2, 3)
KEYS = (b"", b"a", b"b", b"c", b"d" * 30, None)
FIRST_BATCHES = 30
MAP_BYTES = (32, 1500, ROOM)
OPERATIONS_MAX = 40  # of the disk, in a pass over several segments


class Line(NamedTuple):
    """One batch to be written."""

    producer: int  # 0: none
    transactional: bool
    records: list[tuple[bytes | None, bytes | None]]
    headers: tuple[tuple[str, bytes | None], ...]
    codec: Compression
    late_ms: int


keys = st.sampled_from(KEYS)
values = st.none() | st.binary(max_size=60)
lines = st.builds(
    Line,
    st.integers(0, len(PRODUCERS)),
    st.booleans(),
    st.lists(st.tuples(keys, values), min_size=1, max_size=5),
    headers,
    codecs,
    st.integers(0, 5_000),
)
seeds = st.integers(0, 1 << 16)
counts = st.integers(0, 25)


class Machine(RuleBasedStateMachine):
    @initialize(
        seed=st.integers(0, 1000),
        deletes=st.booleans(),
        append_time=st.booleans(),
        worker_lost_chance=st.sampled_from([0.0, 0.0, 0.05]),
    )
    def open(self, seed: int, deletes: bool, append_time: bool, worker_lost_chance: float) -> None:
        self.deletes = deletes
        self.settings = topic(
            segment_bytes=1024,
            index_interval_bytes=120,
            cleanup_policy="compact,delete" if deletes else "compact",
            retention_ms=RETENTION_MS,
            delete_retention_ms=KEPT_MS,
            min_cleanable_dirty_ratio="0.01",
            message_timestamp_type="LogAppendTime" if append_time else "CreateTime",
        )
        self.append_time = append_time
        self.world = World(seed, odds=Odds(worker_lost_chance=worker_lost_chance))
        self.machine = self.world.machine("broker")
        self.history, self.epoch, self.start, self.flushed = History(), 1, 0, 0
        self.points: dict[str, RecoveryPoint | None] = {LEADER: None, FOLLOWER: None}
        self.granted = False  # whether the follower began with an empty log under this leader
        self.boot()
        self.append_many(seed, FIRST_BATCHES)

    def run(self, work: Awaitable[T]) -> T:
        """Run it as the broker's process; `Crashed` if that ends meanwhile."""

        async def play() -> T:
            async def inside() -> T:
                return await work

            return await self.machine.run(inside())

        return self.world.run(play())

    def boot(self) -> None:
        ports = self.machine.boot()
        self.leader = self.run(self.opened(ports, LEADER))
        self.follower = self.run(self.opened(ports, FOLLOWER))

    async def opened(self, ports: Ports, folder: str) -> Log:
        await make_lasting_dir(ports.disk, "/data")
        return await open_log(
            folder, settings=self.settings, fsync="always", recovery=self.points[folder], clean=False, ports=ports
        )

    def teardown(self) -> None:
        if hasattr(self, "world"):
            try:
                self.end_alike()
            finally:
                self.world.close()

    @property
    def now_ms(self) -> int:
        return self.machine.clock.wall_ms()

    @property
    def stable(self) -> int:
        return self.leader.last_stable(self.leader.durable)

    # Writing

    @rule(batches=st.lists(lines, min_size=1, max_size=8), flushes=st.sampled_from([True, True, False]))
    def append(self, batches: list[Line], flushes: bool) -> None:
        self.run(self.write(batches, flushes))

    async def write(self, batches: list[Line], flushes: bool) -> None:
        for line in batches:
            batch = memoryview(self.built(line))
            # as when the topic was not compacted yet: records without a key were accepted
            done = self.leader.append(batch, check_batch(batch), self.epoch, self.now_ms, internal=True)
            assert done.base_offset == self.history.end
            self.history.add(bytes(batch))
        if flushes:
            await self.leader.flush()
            self.flushed = self.leader.end

    def built(self, line: Line) -> bytearray:
        when = self.now_ms - line.late_ms
        records = [
            NewRecord(value, key, line.headers, when + number) for number, (key, value) in enumerate(line.records)
        ]
        if not line.producer:
            return build_batch(records, compression=line.codec)
        return build_batch(
            records,
            compression=line.codec,
            producer_id=line.producer,
            producer_epoch=0,
            base_sequence=self.history.next_sequence(line.producer),
            transactional=line.transactional or line.producer in self.history.open,
        )

    @rule(seed=seeds, count=counts)
    def append_many(self, seed: int, count: int) -> None:
        """Enough for several segments; the transactions among them end at random."""
        self.run(self.write_many(random.Random(seed), count))

    async def write_many(self, rng: random.Random, count: int) -> None:
        for _ in range(count):
            records = [(rng.choice(KEYS), rng.choice((None, rng.randbytes(40)))) for _ in range(rng.randint(1, 4))]
            producer = rng.randint(0, len(PRODUCERS))
            line = Line(producer, rng.random() < 0.5, records, (), rng.choice(COMPRESSIONS), rng.randrange(2_000))
            await self.write([line], flushes=False)
            for ending in [one for one in self.history.open if rng.random() < 0.2]:
                await self.write_marker(ending, committed=rng.random() < 0.6)
        await self.leader.flush()
        self.flushed = self.leader.end

    @rule(producer=st.sampled_from(PRODUCERS), committed=st.booleans())
    def end_transaction(self, producer: int, committed: bool) -> None:
        if producer in self.history.open:
            self.run(self.write_marker(producer, committed=committed))

    async def write_marker(self, producer: int, *, committed: bool) -> None:
        marker = marker_batch(
            committed=committed, producer_id=producer, producer_epoch=0, coordinator_epoch=0, timestamp=self.now_ms
        )
        batch = memoryview(marker)
        self.leader.append(batch, read_header(batch), self.epoch, self.now_ms, internal=True)
        self.history.add(bytes(batch))
        await self.leader.flush()
        self.flushed = self.leader.end

    @rule(producer=st.sampled_from(PRODUCERS))
    def retry(self, producer: int) -> None:
        """The last batch of a producer is known as a duplicate, whatever was compacted of it."""
        last = self.history.last_of(producer)
        known = self.leader.producers.get(producer)
        if last is None or last.header.base_offset < self.start or known is None or not known.sent:
            return

        async def send() -> Appended:
            batch = memoryview(bytearray(last.data))
            return put(self.leader, batch, epoch=self.epoch, now_ms=self.now_ms)

        if last.header.is_transactional == (producer in self.history.open):
            done = self.run(send())
            assert (done.duplicate, done.base_offset) == (True, last.header.base_offset)

    # Maintenance

    @rule()
    def checkpoint(self) -> None:
        self.run(self.save(self.leader))
        self.run(self.save(self.follower))
        self.flushed = self.leader.end

    async def save(self, log: Log) -> None:
        point = await log.checkpoint()
        self.points[log.folder] = point
        if point is not None:
            log.recorded(point)

    @rule(seconds=st.sampled_from([1, 15, 25]), follower=st.sampled_from(["caught up", "behind", "away"]))
    def raise_horizon(self, seconds: int, follower: str) -> None:
        """As a leader does after some time; a follower that is away for long is not waited for."""
        self.world.run(asyncio.sleep(seconds))
        if follower == "caught up":
            self.run(self.fetch_all())
        covered = self.leader.clean.covered_since(self.now_ms - KEPT_MS)
        self.granted = self.granted and follower != "away"
        end = self.leader.durable if follower == "away" else self.follower.end
        self.run(self.leader.raise_horizon(min(covered, self.leader.durable, end)))

    @property
    def removable(self) -> int:
        """Where the leader may remove tombstones: a grant holds it back."""
        return self.follower.end if self.granted else self.leader.horizon

    @rule(
        seed=seeds,
        count=counts,
        map_bytes=st.sampled_from(MAP_BYTES),
        times=st.integers(1, 3),
        follower=st.sampled_from(["caught up", "behind", "away"]),
    )
    def compact(self, seed: int, count: int, map_bytes: int, times: int, follower: str) -> None:
        self.append_many(seed, count)
        self.run(self.save(self.leader))
        self.flushed = self.leader.end
        if follower == "behind":
            self.follow(700, 2)
        for _ in range(times):
            self.run(self.passed(self.leader, self.stable, self.removable, map_bytes))
        self.raise_horizon(25, follower)

    @rule(map_bytes=st.sampled_from(MAP_BYTES))
    def compact_follower(self, map_bytes: int) -> None:
        self.run(self.save(self.follower))
        stable = self.follower.last_stable(self.follower.durable)
        self.run(self.passed(self.follower, stable, self.follower.horizon, map_bytes))

    async def passed(self, log: Log, stable: int, removable: int, map_bytes: int) -> None:
        """One pass; when it has come to the end of the closed segments, exactly the right records are left."""
        had = {one.offset: None for one in data_records(await stored(log), log.start)}
        horizons = [self.horizon(log, removable)]
        try:
            done = await compact_once(log, stable, removable, map_bytes)
        except WorkerLost:
            return
        if done is None or done.full:
            return
        horizons.append(self.horizon(log, removable))  # it may have risen meanwhile
        left = [one for one in data_records(await stored(log), log.start) if one.offset < done.upto]
        wanted = [self.history.survivors(log.start, done.upto, horizon) for horizon in horizons]
        if log is self.follower:  # it was never sent what the leader had removed
            wanted = [[one for one in records if one.offset in had] for records in wanted]
        assert left in wanted

    def horizon(self, log: Log, removable: int) -> int:
        return min(removable, log.horizon, log.clean.covered_since(self.now_ms - KEPT_MS))

    @precondition(lambda self: self.deletes)
    @rule()
    def retain(self) -> None:
        self.run(self.leader.retain(self.now_ms, self.leader.durable))
        self.start = self.leader.start

    @rule(where=st.floats(0, 0.3))
    def delete_records(self, where: float) -> None:
        self.start += round(where * (self.flushed - self.start))
        self.run(self.leader.advance_start(self.start))

    # Crashes

    @rule(power_loss=st.booleans())
    def crash(self, power_loss: bool) -> None:
        self.machine.crash(power_loss=power_loss)
        self.reopen()

    @rule(
        seed=seeds,
        count=counts,
        operation=st.integers(1, OPERATIONS_MAX),
        power_loss=st.booleans(),
        map_bytes=st.sampled_from(MAP_BYTES),
    )
    def crash_in_a_pass(self, seed: int, count: int, operation: int, power_loss: bool, map_bytes: int) -> None:
        """The process ends just before an operation of the disk."""
        self.append_many(seed, count)
        self.run(self.save(self.leader))
        self.flushed = self.leader.end
        self.machine.crash_at_operation(operation, power_loss=power_loss)
        with suppress(Crashed):
            self.run(self.passed(self.leader, self.stable, self.removable, map_bytes))
            self.machine.crash(power_loss=power_loss)
        self.reopen()

    @rule()
    def stop_and_start(self) -> None:
        self.points[LEADER] = self.run(self.leader.close())
        self.points[FOLLOWER] = self.run(self.follower.close())
        self.flushed = self.leader.end
        self.machine.crash(power_loss=False)
        self.reopen()

    def reopen(self) -> None:
        fetched = self.follower.end
        self.boot()
        assert self.leader.end >= self.flushed
        assert self.follower.end == fetched
        self.history.truncate(self.leader.end)
        self.run(self.leader.advance_start(self.start))  # as the metadata log would
        self.flushed, self.granted = self.leader.end, False
        self.epoch += 1

    # The follower

    @rule(max_bytes=st.sampled_from([1, 700, 3000]), times=st.integers(1, 6))
    def follow(self, max_bytes: int, times: int) -> None:
        for _ in range(times):
            self.run(self.fetch(max_bytes))

    @rule(times=st.integers(1, 3))
    def refill(self, times: int) -> None:
        """As a damaged replica does: it begins with an empty log, and what it lacks must not go meanwhile."""
        self.run(self.start_over())
        self.follow(700, times)

    async def start_over(self) -> None:
        await self.follower.start_over(keep_aside=True)
        self.points[FOLLOWER] = None

    async def fetch_all(self) -> None:
        await self.leader.flush()
        while self.follower.end < self.leader.end:
            await self.fetch(3000)

    async def fetch(self, max_bytes: int) -> None:
        leader, follower = self.leader, self.follower
        if follower.end < leader.start:  # it goes on with the batch that holds the leader's log start
            data, _ = await read(leader, leader.start, 1, leader.durable)
            begins = read_header(data).base_offset if data else leader.start
            if follower.end < begins:
                await follower.truncate_fully_and_start_at(begins)
        if leader.start <= follower.end < leader.horizon and not (self.granted or not follower.segments):
            await self.start_over()
        self.granted = self.granted or not follower.segments
        if leader.horizon > follower.horizon:
            await follower.raise_horizon(leader.horizon)
        data, _ = await read(leader, max(follower.end, leader.start), max_bytes, leader.durable)
        follower.append_as_is(memoryview(bytearray(data)), self.now_ms)
        await follower.flush()

    # Reading

    @precondition(lambda self: self.history.written)
    @rule(where=st.floats(0, 1), max_bytes=st.sampled_from([1, 300]), wanted_ms=st.integers(-6_000, 1_000))
    def read_and_look_up(self, where: float, max_bytes: int, wanted_ms: int) -> None:
        for log in (self.leader, self.follower):
            offset = log.start + round(where * (log.end - log.start))
            self.run(self.read_over_fillers(log, offset, max_bytes))
            self.run(self.look_up(log, self.now_ms + wanted_ms))

    async def read_over_fillers(self, log: Log, offset: int, max_bytes: int) -> None:
        wanted = [one for one in data_records(await stored(log), offset) if one.offset >= offset]
        got, at = list[Record](), offset
        while at < log.end:
            data, following = await read(log, at, max_bytes)
            assert following > at
            got += data_records([(bytes(batch), header) for batch, header in batches(data)], offset)
            at = following
        assert got == wanted

    async def look_up(self, log: Log, time_ms: int) -> None:
        records = data_records(await stored(log), log.start)
        found = await log.offset_for_time(time_ms, log.end)
        first = next((one for one in records if one.timestamp >= time_ms), None)
        newest = await log.max_timestamp(log.end)
        if self.append_time:  # answered from headers: the offset may be of a record of the batch that was removed
            assert first is None or found is not None
            assert found is None or [one for one in records if one.offset >= found.offset][:1] in ([first], [])
            return
        assert (found and found[:2]) == (first and first[:2])
        latest = max(records, key=lambda one: (one.timestamp, -one.offset), default=None)
        assert latest is None or (newest and newest[:2]) == latest[:2]

    # What must be true after each step

    @invariant()
    def nothing_is_lost_or_back(self) -> None:
        if hasattr(self, "history"):
            assert self.leader.end == self.history.end
            self.run(check(self.leader, self.history, self.leader.durable))
            self.run(check(self.follower, self.history, self.follower.durable))

    def end_alike(self) -> None:
        """Once the follower has everything, and both are compacted up to the end, the same records are left."""
        for producer in list(self.history.open):
            self.end_transaction(producer, committed=False)
        self.run(self.fetch_all())
        self.run(self.follower.advance_start(self.leader.start))
        self.nothing_is_lost_or_back()
        assert self.last_batches(self.leader) == self.last_batches(self.follower)
        left = [self.run(self.compacted_to_the_end(log)) for log in (self.leader, self.follower)]
        assert left[0] == left[1]
        self.nothing_is_lost_or_back()

    def last_batches(self, log: Log) -> dict[int, tuple[int, int]]:
        """The last batch of each producer, by which a repeated one is recognised: where it begins and its sequence."""
        return {
            producer_id: (producer.sent[-1].base_offset, producer.sent[-1].last_sequence)
            for producer_id, producer in log.producers.items()
            if producer.sent and producer.sent[-1].base_offset >= self.leader.start
        }

    async def compacted_to_the_end(self, log: Log) -> list[Record]:
        """What is left of a log; tombstones are not compared: when they go depends on each replica's own passes."""
        if log.segments:
            roll(log, log.end)
            await self.save(log)
        done: object = True
        while done is not None:
            with suppress(WorkerLost):
                done = await compact_once(log, log.end, 0)
        assert log.clean.clean_to == log.end
        left = data_records(await stored(log), log.start)
        wanted = self.history.survivors(log.start, log.end, log.horizon)
        assert [one for one in left if one.value is not None] == [one for one in wanted if one.value is not None]
        return [one for one in left if one.value is not None or one.key is None]


TestCompactedLog = Machine.TestCase
TestCompactedLog.settings = settings(
    max_examples=30, stateful_step_count=20, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
