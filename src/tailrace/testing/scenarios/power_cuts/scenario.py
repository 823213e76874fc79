"""One broker under load whose power is cut again and again; sometimes it is killed or stopped cleanly instead.

A power cut loses any part of what was not synced, directory entries included, and tears writes. The next start
recovers, and is sometimes cut again half way. Meanwhile the disk fills up, the clock jumps, segments roll, retention
and DeleteRecords remove old segments, and topics are created and deleted.

After each start the partitions are read back with Fetch. Every acknowledged record must be there, in order, once, at
the acknowledged offset; deleted records must stay deleted; the leader epoch must be higher than before.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final

from tailrace.broker.node import CannotStart, Node
from tailrace.broker.starting import start_broker
from tailrace.cluster.controller import Controller, NewTopic, TopicCreated
from tailrace.doors.kafka import open_door
from tailrace.model.addresses import Address
from tailrace.model.faults import StorageFailed, TopicExists
from tailrace.model.ids import Id
from tailrace.model.limits import MiB
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
KEPT_TOPIC: Final = "t"  # never trimmed
TRIMMED_TOPIC: Final = "short"  # trimmed by retention and DeleteRecords
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
CUT_MAX_SECONDS: Final = 60.0  # virtual, per power cut; bounds a run in which a partition stays offline for good
OVERLAP_RECORDS: Final = 150  # how many records before the last high watermark a partial read starts


@dataclass(slots=True)
class Coverage:
    """How often a run exercised what it is meant to test: a run in which little happened proves little."""

    power_cuts: int = 0
    kills: int = 0
    clean_stops: int = 0
    cuts_in_recovery: int = 0
    refused_starts: int = 0  # because the disk was full
    acknowledged: int = 0  # records
    refused: int = 0  # produce requests that got a retriable error
    partitions_read: int = 0
    segments: int = 0  # of the largest log
    trimmed: int = 0  # records below the log start offset
    topic_changes: int = 0
    topic_checks: int = 0  # after a restart
    full_disks: int = 0
    clock_jumps: int = 0

    def add(self, other: "Coverage") -> None:
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


async def serve_with_topics(ports: Ports, settings: Settings) -> Node:
    node = await start_broker(ports, settings)
    await node.register({"kafka": Address(node.advertised_host, settings.kafka_port)})
    for wanted in TOPICS:
        with suppress(TopicExists):
            await node.control.role.active.write(partial(_create, wanted, ports.random.new_id))
    await node.control.progress.settled()
    await node.control.progress.until_led([topic.id for topic in node.hosted.image.topics.values()])
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
        self._faults = BackgroundFaults(self._broker, self._rng)
        self._epochs: dict[tuple[str, int], int] = {}  # of the last start, by partition
        self._high_watermarks: dict[tuple[str, int], int] = {}  # of the last read, by partition
        self._starts = 0
        self.coverage = Coverage()

    async def run(self) -> Coverage:
        await self._start(cut_during_recovery=False)
        producing = [self._clients.spawn(producer.run()) for producer in self._producers]
        others = [self._clients.spawn(self._admin.run()), asyncio.ensure_future(self._faults.run())]
        while self.coverage.power_cuts < self._cuts:
            await asyncio.sleep(self._rng.uniform(0.01, 1.0))
            await self._stop()
            await asyncio.sleep(self._rng.uniform(0.0, 0.3))
            await self._start(cut_during_recovery=self._rng.random() < 0.15)
            await self._clients.run(self._check(whole=self._rng.random() < 0.2))
        self._admin.stopping = self._faults.stopping = True
        for producer in self._producers:
            producer.stopping = True
        for task in others + producing:
            await self._await_with_restarts(task)
        self._faults.make_room()
        await self._await_with_restarts(self._clients.spawn(self._check_all_readable()))
        await self._stop_at_end()
        self._count()
        return self.coverage

    async def _stop_at_end(self) -> None:
        """Stop the broker, unless a power cut that was scheduled earlier comes first.

        If the run ended with the broker running, a checkpoint that was being written would look like a failed task.
        """
        if self._broker.process is not None:
            with suppress(Crashed):
                await self._broker.run(self._node.stop())

    async def _await_with_restarts(self, task: "asyncio.Future[None]") -> None:
        """Wait for a client to finish; restart the broker if a power cut that was scheduled earlier stops it."""
        while not task.done():
            if self._broker.process is None:
                self.coverage.power_cuts += 1
                await self._start(cut_during_recovery=False)
            await asyncio.sleep(0.01)
        await task

    # Starting and stopping the broker

    async def _start(self, *, cut_during_recovery: bool) -> None:
        """Boot until the broker has recovered; with `cut_during_recovery` the power is cut soon after the boot."""
        while True:
            ports = self._broker.boot()
            self._starts += 1
            if cut_during_recovery:
                self._broker.crash_at_operation(self._rng.randrange(1, 40), power_loss=True)
            try:
                self._node = await self._broker.run(serve_with_topics(ports, self._draw_settings()))
            except Crashed:
                self.coverage.cuts_in_recovery += 1
                self.coverage.power_cuts += 1
                cut_during_recovery = False
            except (CannotStart, StorageFailed) as error:  # StorageFailed: no room to create the topics
                self._make_room_after(error)
            else:
                self._check_epochs()
                self._admin.check_due = True
                return

    def _make_room_after(self, error: Exception) -> None:
        """Prepare another start after one that a full disk refused."""
        if "full" not in str(error) and "No space left" not in str(error):
            raise GuaranteeViolated(f"the broker does not start: {error}") from error
        self._faults.make_room()
        self.coverage.refused_starts += 1
        self._broker.crash(power_loss=False)

    def _draw_settings(self) -> Settings:
        choose = self._rng.choice
        return Settings(
            host=HOST,
            data_dir=DATA_DIR,
            log_segment_bytes=choose([2_000, 20_000, 1_000_000]),
            log_segment_ms=choose([300, 604_800_000]),
            log_index_interval_bytes=choose([0, 500, 4096]),
            log_checkpoint_interval_ms=choose([100, 700, 60_000]),
            log_checkpoint_interval_bytes=MiB,
            log_retention_check_interval_ms=choose([50, 400]),
            log_message_timestamp_type=choose(["CreateTime", "LogAppendTime"]),
        )

    async def _stop(self) -> None:
        if self._broker.process is None:  # the power cut that was meant for the recovery came after it
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

    # Checks

    def _check_epochs(self) -> None:
        for topic, partition in dict.fromkeys(WRITERS):
            found = self._node.hosted.find(topic, partition)
            if not found.leads:
                continue  # the disk is too full for its vote or its first batch
            epoch = found.epoch
            if epoch <= self._epochs.get((topic, partition), -1):
                raise GuaranteeViolated(f"{topic}-{partition} was started twice in leader epoch {epoch}")
            self._epochs[topic, partition] = epoch

    async def _check_all_readable(self) -> None:
        """Check every partition from its start, and wait until each can be read."""
        while not await self._check(whole=True):  # noqa: ASYNC110
            await asyncio.sleep(0.1)

    async def _check(self, *, whole: bool) -> bool:
        """Read every partition back and check it, from its start if `whole`; False if one could not be read now."""
        for topic, partition in dict.fromkeys(WRITERS):
            mine = [one for one in self._producers if (one.topic, one.partition) == (topic, partition)]
            acknowledged_before = [dict(one.acknowledged) for one in mine]
            trimmed_to = self._admin.trimmed_to if topic == TRIMMED_TOPIC else 0
            last = self._high_watermarks.get((topic, partition), 0)
            since = 0 if whole else max(0, last - OVERLAP_RECORDS)
            content = await read_partition(self._reader, topic, partition, since)
            if content is None:
                return False  # the broker went down again; the check after its next start covers this
            self.coverage.partitions_read += 1
            self._high_watermarks[topic, partition] = content.high_watermark
            if content.high_watermark < last:
                raise GuaranteeViolated(
                    f"{topic}-{partition}: the high watermark went back from {last} to {content.high_watermark}"
                )
            if content.log_start < trimmed_to or (topic == KEPT_TOPIC and content.log_start != 0):
                raise GuaranteeViolated(f"{topic}-{partition} starts at {content.log_start}, not at {trimmed_to}")
            if content.control_batches > self._starts:  # a new leader appends at most one
                raise GuaranteeViolated(
                    f"{topic}-{partition}: {content.control_batches} control batches after {self._starts} starts"
                )
            for producer, acknowledged in zip(mine, acknowledged_before, strict=True):
                check_acknowledged(content, producer, acknowledged)
        return True

    def _count(self) -> None:
        coverage = self.coverage
        coverage.acknowledged = sum(len(one.acknowledged) for one in self._producers)
        coverage.refused = sum(one.refused for one in self._producers)
        coverage.segments = max(len(one.log.segments) for one in self._node.hosted.all())
        coverage.trimmed = self._node.hosted.find(TRIMMED_TOPIC, 0).log.start
        coverage.topic_changes, coverage.topic_checks = self._admin.changes, self._admin.checks
        coverage.full_disks, coverage.clock_jumps = self._faults.full_disks, self._faults.clock_jumps
        for producer in self._producers:
            self._admin.add_producer_id(producer.producer_id)
            if len(producer.acknowledged) != producer.sent:
                unacknowledged = producer.sent - len(producer.acknowledged)
                raise GuaranteeViolated(f"{producer.name} ended with {unacknowledged} records not acknowledged")


def run_power_cuts(seed: int, cuts: int) -> tuple[Coverage, str]:
    """Run one seed; returns its coverage and the digest of its history."""
    slow_syncs = Delay(low_seconds=0.0001, high_seconds=0.005, slow_chance=(0.02, 0.3)[seed // 3 % 2], slow_seconds=0.2)
    odds = Odds(cold_chance=(0.0, 0.1, 0.5)[seed % 3], sync=slow_syncs)
    with World(seed, odds=odds, seconds_max=cuts * CUT_MAX_SECONDS) as world:
        coverage = world.run(PowerCutScenario(world, cuts).run())
        return coverage, world.digest
