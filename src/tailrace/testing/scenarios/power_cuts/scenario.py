"""One broker under load whose power is cut, again and again; and killed, and stopped, now and then.

A cut loses any part of what was not synced, names in folders too, and tears writes; the next start recovers, sometimes
to be cut again half way. Meanwhile the disk fills up, the clock jumps, segments roll, retention and DeleteRecords take
old ones away, topics come and go. After each start the log is read back through the door: every acknowledged record is
there, in order, once, at the offset that was promised; what was deleted stays deleted; epochs rise.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final

from tailrace.broker.node import CannotStart, Node
from tailrace.cluster.controller import Controller, NewTopic, TopicCreated
from tailrace.doors.kafka import open_door
from tailrace.model.faults import StorageFailed, TopicExists
from tailrace.model.ids import Id
from tailrace.model.proposal import Proposal
from tailrace.model.settings import Settings
from tailrace.ports import Ports
from tailrace.testing.scenarios.power_cuts.administrator import Administrator
from tailrace.testing.scenarios.power_cuts.background_faults import BackgroundFaults
from tailrace.testing.scenarios.power_cuts.producer import CheckedProducer
from tailrace.testing.scenarios.power_cuts.read_back import GuaranteeViolated, check_acknowledged, read_partition
from tailrace.testing.scenarios.reconnecting_client import ReconnectingClient
from tailrace.testing.simulation import Crashed, Delay, Odds, World

HOST: Final = "broker"
DATA_DIR: Final = "/data"
KEPT_TOPIC: Final = "t"  # nothing is ever removed from it
TRIMMED_TOPIC: Final = "short"  # retention and DeleteRecords work on it
TOPICS: Final = (
    NewTopic(name=KEPT_TOPIC, partitions=3, replication_factor=1),
    NewTopic(
        name=TRIMMED_TOPIC,
        partitions=1,
        replication_factor=1,
        settings={"retention.bytes": "6000", "segment.bytes": "1500"},
    ),
)
WRITERS: Final = ((KEPT_TOPIC, 0), (KEPT_TOPIC, 0), (KEPT_TOPIC, 1), (KEPT_TOPIC, 2), (TRIMMED_TOPIC, 0))
CUT_MAX_SECONDS: Final = 60.0  # virtual; a partition that is offline for good would never come to an end
OVERLAP_RECORDS: Final = 150  # how far a partial reading goes back


@dataclass(slots=True)
class Coverage:
    """What a run came across, so that an empty one cannot pass for a good one."""

    power_cuts: int = 0
    kills: int = 0
    clean_stops: int = 0
    cuts_in_recovery: int = 0
    full_starts: int = 0  # starts that a full disk refused
    acknowledged: int = 0
    refused: int = 0  # produce requests that were told to come again
    readings: int = 0
    segments: int = 0  # of the largest log
    trimmed: int = 0  # records below a start that was moved
    changes: int = 0  # of topics and settings
    looks: int = 0  # at topics and settings, after a restart
    full_disks: int = 0
    clock_jumps: int = 0

    def add(self, other: "Coverage") -> None:
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


async def serve(ports: Ports, settings: Settings) -> Node:
    node = Node(ports, settings)
    await node.start()
    await node.register()
    for wanted in TOPICS:
        with suppress(TopicExists):
            await node.controller.write(partial(_create, wanted, ports.random.new_id))
    await node.settled()
    await node.until_led([topic.id for topic in node.hosted.image.topics.values()])
    await open_door(node)
    return node


def _create(wanted: NewTopic, new_id: Callable[[], Id], controller: Controller) -> Proposal[TopicCreated]:
    return controller.create_topic(wanted, new_id)


class PowerCutScenario:
    def __init__(self, world: World, cuts: int) -> None:
        self._world = world
        self._cuts = cuts
        self._broker = world.machine(HOST)
        self._rng = world.random
        self._clients = world.machine("clients")
        ports = self._clients.boot()
        self._reader = ReconnectingClient(ports, "reader", HOST)
        self._producers = [
            CheckedProducer(ports, self._rng, f"p{number}", HOST, topic, partition)
            for number, (topic, partition) in enumerate(WRITERS)
        ]
        self._admin = Administrator(ports, self._rng, HOST, TRIMMED_TOPIC)
        self._weather = BackgroundFaults(self._broker, self._rng)
        self._epochs: dict[tuple[str, int], int] = {}
        self._read_to: dict[tuple[str, int], int] = {}
        self._unclean_starts = 0
        self._clean = False
        self.coverage = Coverage()

    async def run(self) -> Coverage:
        await self._start(doomed=False)
        loads = [self._clients.spawn(producer.run()) for producer in self._producers]
        others = [self._clients.spawn(self._admin.run()), asyncio.ensure_future(self._weather.run())]
        while self.coverage.power_cuts < self._cuts:
            await asyncio.sleep(self._rng.uniform(0.01, 1.0))
            await self._stop()
            await asyncio.sleep(self._rng.uniform(0.0, 0.3))
            await self._start(doomed=self._rng.random() < 0.15)
            await self._clients.run(self._check(whole=self._rng.random() < 0.2))
        self._admin.stopping = self._weather.stopping = True
        for producer in self._producers:
            producer.stopping = True
        for one in others + loads:
            await self._keep_up(one)
        self._weather.clear()
        await self._keep_up(self._clients.spawn(self._check_at_last()))
        await self._end()
        self._count()
        return self.coverage

    async def _end(self) -> None:
        """Stop, if a cut that was set earlier lets us: a checkpoint that the end cuts off looks like a failure."""
        if self._broker.process is not None:
            with suppress(Crashed):
                await self._broker.run(self._node.stop())

    async def _keep_up(self, one: "asyncio.Future[None]") -> None:
        """Let somebody come to an end, on a broker that lives and has room."""
        while not one.done():
            if self._broker.process is None:
                self.coverage.power_cuts += 1
                await self._start(doomed=False)
            await asyncio.sleep(0.01)
        await one

    # The broker's lives

    async def _start(self, *, doomed: bool) -> None:
        """Boot and recover, however often the power goes meanwhile."""
        while True:
            ports = self._broker.boot()
            self._unclean_starts += not self._clean
            self._clean = False
            if doomed:
                self._broker.crash_at_operation(self._rng.randrange(1, 40), power_loss=True)
            try:
                self._node = await self._broker.run(serve(ports, self._settings()))
            except Crashed:
                self.coverage.cuts_in_recovery += 1
                self.coverage.power_cuts += 1
                doomed = False
            except (CannotStart, StorageFailed) as error:  # the latter: no room for the first topics
                self._make_room(error)
            else:
                self._check_epochs()
                self._admin.look_due = True
                return

    def _make_room(self, error: Exception) -> None:
        if "full" not in str(error) and "No space left" not in str(error):
            raise GuaranteeViolated(f"the broker does not start: {error}") from error
        self._weather.clear()
        self.coverage.full_starts += 1
        self._broker.crash(power_loss=False)

    def _settings(self) -> Settings:
        choose = self._rng.choice
        return Settings(
            host=HOST,
            data_dir=DATA_DIR,
            log_segment_bytes=choose([2_000, 20_000, 1_000_000]),
            log_segment_ms=choose([300, 604_800_000]),
            log_index_interval_bytes=choose([0, 500, 4096]),
            log_checkpoint_interval_ms=choose([100, 700, 60_000]),
            log_retention_check_interval_ms=choose([50, 400]),
            log_message_timestamp_type=choose(["CreateTime", "LogAppendTime"]),
        )

    async def _stop(self) -> None:
        if self._broker.process is None:  # the cut that was set for the recovery came later
            self.coverage.power_cuts += 1
            return
        draw = self._rng.random()
        if draw < 0.15:
            try:
                await self._broker.run(self._node.stop())
            except Crashed:
                self.coverage.power_cuts += 1
                return
            self.coverage.clean_stops += 1
        power_loss = self._rng.random() < 0.8
        self._broker.crash(power_loss=power_loss)
        self.coverage.power_cuts += power_loss
        self.coverage.kills += not power_loss

    # What must hold

    def _check_epochs(self) -> None:
        for topic, partition in dict.fromkeys(WRITERS):
            found = self._node.hosted.find(topic, partition)
            if not found.leads:
                continue  # the disk is full
            epoch = found.epoch
            if epoch <= self._epochs.get((topic, partition), -1):
                raise GuaranteeViolated(f"{topic}-{partition} starts in epoch {epoch} again")
            self._epochs[topic, partition] = epoch

    async def _check_at_last(self) -> None:
        while not await self._check(whole=True):  # noqa: ASYNC110
            await asyncio.sleep(0.1)

    async def _check(self, *, whole: bool) -> bool:
        """Read everything back; False: not all could be read now."""
        for topic, partition in dict.fromkeys(WRITERS):
            mine = [one for one in self._producers if (one.topic, one.partition) == (topic, partition)]
            promised = [dict(one.promises.acknowledged) for one in mine]
            trimmed_to = self._admin.trimmed_to if topic == TRIMMED_TOPIC else 0
            last = self._read_to.get((topic, partition), 0)
            since = 0 if whole else max(0, last - OVERLAP_RECORDS)
            history = await read_partition(self._reader, topic, partition, since)
            if history is None:
                return False  # it went down again before we could look; the next start is checked
            self.coverage.readings += 1
            self._read_to[topic, partition] = history.high_watermark
            if history.high_watermark < last:
                raise GuaranteeViolated(
                    f"{topic}-{partition} ended at {last} for readers, now at {history.high_watermark}"
                )
            if history.log_start < trimmed_to or (topic == KEPT_TOPIC and history.log_start != 0):
                raise GuaranteeViolated(f"{topic}-{partition} begins at {history.log_start}, not at {trimmed_to}")
            if history.control_batches > self._unclean_starts:
                raise GuaranteeViolated(f"{topic}-{partition}: {history.control_batches} control batches")
            for producer, acknowledged in zip(mine, promised, strict=True):
                check_acknowledged(history, producer, acknowledged)
        return True

    def _count(self) -> None:
        coverage = self.coverage
        coverage.acknowledged = sum(len(one.promises.acknowledged) for one in self._producers)
        coverage.refused = sum(one.promises.refused for one in self._producers)
        coverage.segments = max(len(one.log.segments) for one in self._node.hosted.all())
        coverage.trimmed = self._node.hosted.find(TRIMMED_TOPIC, 0).log.start
        coverage.changes, coverage.looks = self._admin.changes, self._admin.looks
        coverage.full_disks, coverage.clock_jumps = self._weather.full_disks, self._weather.clock_jumps
        for producer in self._producers:
            self._admin.took(producer.producer_id)
            if len(producer.promises.acknowledged) != producer.promises.sent:
                raise GuaranteeViolated(f"{producer.name} came to an end with records that nobody acknowledged")


def run_power_cuts(seed: int, cuts: int) -> tuple[Coverage, str]:
    """One seed: what it met, and the digest of its history."""
    slow_syncs = Delay(low_seconds=0.0001, high_seconds=0.005, slow_chance=(0.02, 0.3)[seed // 3 % 2], slow_seconds=0.2)
    odds = Odds(cold_chance=(0.0, 0.1, 0.5)[seed % 3], sync=slow_syncs)
    with World(seed, odds=odds, seconds_max=cuts * CUT_MAX_SECONDS) as world:
        coverage = world.run(PowerCutScenario(world, cuts).run())
        return coverage, world.digest
