"""One broker under load whose power is cut, again and again; and killed, now and then.

A cut loses any part of what was not synced, names in folders too, and tears writes; the next start recovers, sometimes
to be cut again half way. After each start the log is read back through the door: every acknowledged record is there, in
order, once, at the offset that was promised; the high watermark has not fallen below it.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass

from tailrace.broker.node import Node
from tailrace.cluster.controller import NewTopic
from tailrace.doors.kafka import open_door
from tailrace.model.faults import TopicExists
from tailrace.model.settings import Settings
from tailrace.ports import Ports
from tailrace.testing.scenarios.history import check_promises, read_history
from tailrace.testing.scenarios.producer import RememberingProducer
from tailrace.testing.simulation import Crashed, World

topic = "t"
partitions = 2
producers = 3
host = "broker"


@dataclass(slots=True)
class Met:
    """What a run came across, so that an empty one cannot pass for a good one."""

    power_cuts: int = 0
    kills: int = 0
    clean_stops: int = 0
    cuts_in_recovery: int = 0
    acknowledged: int = 0
    unacknowledged: int = 0

    def add(self, other: "Met") -> None:
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


async def serve(ports: Ports, settings: Settings) -> Node:
    node = Node(ports, settings)
    await node.start()
    wanted = NewTopic(name=topic, partitions=partitions, replication_factor=1)
    with suppress(TopicExists):
        await node.controller.write(lambda controller: controller.create_topic(wanted, ports.random.new_id))
    await node.replicas.settle()
    await open_door(node)
    return node


class PowerCuts:
    def __init__(self, world: World, cuts: int) -> None:
        self._world = world
        self._cuts = cuts
        self._broker = world.machine(host)
        self._chance = world.random
        self.met = Met()

    async def run(self) -> Met:
        clients = self._world.machine("clients")
        ports = clients.boot()
        self._producers = [
            RememberingProducer(ports, self._chance, f"p{number}", host, topic, number % partitions)
            for number in range(producers)
        ]
        node = await self._start()
        runs = [clients.spawn(producer.run()) for producer in self._producers]
        while self.met.power_cuts < self._cuts:
            await asyncio.sleep(self._chance.uniform(0.01, 1.5))
            await self._stop(node)
            await asyncio.sleep(self._chance.uniform(0.0, 0.3))
            node = await self._start()
            await clients.run(self._check(ports))
        for producer in self._producers:
            producer.stopping = True
        for run in runs:
            await run
        await clients.run(self._check(ports))
        for producer in self._producers:
            self.met.acknowledged += len(producer.promises.acknowledged)
            self.met.unacknowledged += producer.promises.sent - len(producer.promises.acknowledged)
        return self.met

    async def _start(self) -> Node:
        """Boot and recover, however often the power goes meanwhile."""
        while True:
            ports = self._broker.boot()
            if self._chance.random() < 0.15:
                self._broker.crash_at_operation(self._chance.randrange(1, 30), power_loss=True)
            try:
                node = await self._broker.run(serve(ports, self._settings()))
            except Crashed:
                self.met.cuts_in_recovery += 1
                self.met.power_cuts += 1
                continue
            return node

    def _settings(self) -> Settings:
        return Settings(
            host=host,
            data_dir="/data",
            log_segment_bytes=self._chance.choice([2_000, 20_000, 1_000_000]),
            log_index_interval_bytes=self._chance.choice([0, 500, 4096]),
            log_checkpoint_interval_ms=self._chance.choice([100, 700, 60_000]),
            log_message_timestamp_type=self._chance.choice(["CreateTime", "LogAppendTime"]),
        )

    async def _stop(self, node: Node) -> None:
        if self._broker.process is None:  # the cut that was set for the recovery came later
            self.met.power_cuts += 1
            return
        chance = self._chance.random()
        try:
            if chance < 0.1:
                await self._broker.run(node.stop())
                self._broker.crash(power_loss=False)
                self.met.clean_stops += 1
                return
        except Crashed:
            self.met.power_cuts += 1
            return
        power_loss = chance < 0.85
        self._broker.crash(power_loss=power_loss)
        if power_loss:
            self.met.power_cuts += 1
        else:
            self.met.kills += 1

    async def _check(self, ports: Ports) -> None:
        for partition in range(partitions):
            writers = [producer for producer in self._producers if producer.partition == partition]
            promised = [dict(producer.promises.acknowledged) for producer in writers]
            try:
                history = await read_history(ports.net, host, topic, partition)
            except OSError:
                return  # it went down again before we could look; the next start is checked
            for producer, acknowledged in zip(writers, promised, strict=True):
                check_promises(history, producer, acknowledged)


def run_power_cuts(seed: int, cuts: int) -> tuple[Met, str]:
    """One seed: what it met, and the digest of its history."""
    with World(seed) as world:
        met = world.run(PowerCuts(world, cuts).run())
        return met, world.digest
