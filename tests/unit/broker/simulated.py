"""Brokers of one cluster in a simulated world, for tests that look at one rule at a time.

    @simulated()
    async def test_…(brokers: Brokers) -> None:
        await brokers.make_topic("t", (1, 2, 3))
        ...

The world is kind: nothing is slow, cold or split unless a test says so.
"""

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from tailrace.broker.node import Node
from tailrace.broker.partitions.partition import Partition
from tailrace.broker.starting import Startup
from tailrace.client.connection import Connection
from tailrace.cluster.features import SUPPORTED_FEATURES, Features
from tailrace.doors.kafka import KafkaDoor, open_door
from tailrace.model.settings import Settings
from tailrace.ports import Ports
from tailrace.records.build import build_batch
from tailrace.records.record import NewRecord
from tailrace.testing.simulation import Delay, Machine, Odds, World
from tailrace.wire.messages.create_topics import CreateTopicsRequest, NewTopic, NewTopicConfig, ReplicaAssignment
from tailrace.wire.messages.delete_topics import DeleteTopicsRequest, TopicToDelete

DATA_DIR: Final = "/data"
KAFKA_PORT: Final = 9092
KIND_ODDS: Final = Odds(
    sync=Delay(low_seconds=0.0005, high_seconds=0.001),
    read=Delay(low_seconds=0.0001, high_seconds=0.0002),
    offload=Delay(low_seconds=0.0001, high_seconds=0.0002),
    link=Delay(low_seconds=0.0001, high_seconds=0.0002),
    cold_chance=0.0,
    short_chance=0.0,
    split_chance=0.0,
)


class Brokers:
    """Running brokers, numbered from 1."""

    def __init__(self, world: World, settings: dict[str, Any]) -> None:
        self.world = world
        self._settings = settings
        self._nodes: dict[int, Node] = {}
        self._doors: dict[int, KafkaDoor] = {}
        self._client = world.machine("client")
        self._net = self._client.boot().net

    def machine(self, broker: int) -> Machine:
        return self.world.machine(f"b{broker}")

    def __getitem__(self, broker: int) -> Node:
        return self._nodes[broker]

    @property
    def ids(self) -> list[int]:
        return list(self._nodes)

    async def start(
        self, broker: int, *, serves: bool = True, features: Features = SUPPORTED_FEATURES, **more: Any
    ) -> None:
        """`serves`: wait until clients can come, which takes a cluster that answers. `features`: of another release."""
        join = "" if broker == 1 else f"b1:{KAFKA_PORT}"
        own = {"host": f"b{broker}", "data_dir": DATA_DIR, "kafka_port": KAFKA_PORT, "join": join, **self._settings}
        ports = self.machine(broker).boot()

        node = self._nodes[broker] = await self.machine(broker).run(_start(ports, {**own, **more}, features))
        if serves:
            self._doors[broker] = await self.machine(broker).run(open_door(node))

    def kill(self, broker: int, *, power_loss: bool = False) -> None:
        self.machine(broker).crash(power_loss=power_loss)
        del self._nodes[broker]
        self._doors.pop(broker, None)

    async def stop(self, broker: int) -> None:
        node, door = self._nodes.pop(broker), self._doors.pop(broker)

        async def stop() -> None:
            door.close()
            await node.stop()

        await self.machine(broker).run(stop())
        self.machine(broker).crash(power_loss=False)

    async def until(self, condition: Callable[[], bool], within_seconds: float = 20.0) -> None:
        await self.world.until(condition, within_seconds=within_seconds)

    async def elapse(self, seconds: float) -> None:
        over = self.world.loop.time() + seconds
        await self.until(lambda: self.world.loop.time() >= over, within_seconds=seconds + 1)

    # What a client does

    async def call(self, broker: int, request: object, version: int) -> Any:
        async def ask() -> Any:
            client = await Connection.connect(self._net, f"b{broker}", KAFKA_PORT, "test")
            try:
                return await asyncio.wait_for(client.call(request, version), 20.0)
            finally:
                client.close()

        return await self._client.spawn(ask())  # a caller that gives up ends it

    async def make_topic(self, name: str, replicas: Sequence[int], **settings: object) -> None:
        """A topic of one partition, led by the first of its replicas and followed by the others."""
        configs = tuple(NewTopicConfig(name=key.replace("_", "."), value=str(one)) for key, one in settings.items())
        place = (ReplicaAssignment(partition=0, broker_ids=tuple(replicas)),)
        topic = NewTopic(name=name, num_partitions=-1, replication_factor=-1, assignments=place, configs=configs)
        answer = await self.call(1, CreateTopicsRequest(topics=(topic,), timeout_ms=5000), 7)
        assert answer.topics[0].error_code == 0, answer.topics[0].error_message
        await self.until(lambda: self._is_followed(name, replicas))

    def _is_followed(self, name: str, replicas: Sequence[int]) -> bool:
        if any(name not in self[one].hosted.image.topics or not self[one].hosted.of_topic(name) for one in replicas):
            return False
        leader = self.replica(replicas[0], name)
        return leader.leads and all(peer.end >= 0 for peer in leader.replica.peers())

    async def delete_topic(self, name: str) -> None:
        answer = await self.call(1, DeleteTopicsRequest(topics=(TopicToDelete(name=name),), timeout_ms=5000), 6)
        assert answer.topics[0].error_code == 0

    def replica(self, broker: int, topic: str) -> Partition:
        return self[broker].hosted.find(topic, 0)

    def within(self, broker: int, work: Callable[[], Any]) -> Any:
        """Do something as part of a broker's process."""
        process = self.machine(broker).process
        assert process is not None
        return process.context.copy().run(work)

    def append(self, broker: int, topic: str, *values: bytes) -> int:
        """Append one batch at its leader, of one record unless more values are given; the offset after it."""
        batch = memoryview(build_batch([NewRecord(value=value, timestamp=1) for value in values or (b"v",)]))
        appended = self.within(broker, lambda: self.replica(broker, topic).append(batch, -1))
        end: int = appended.last_offset + 1
        return end


def simulated(
    count: int = 3,
    seed: int = 7,
    odds: Odds = KIND_ODDS,
    features: Features = SUPPORTED_FEATURES,
    **settings: Any,
) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., None]]:
    """A test that gets a fresh cluster whose metadata has all its voters."""

    def decorate(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
        async def play(world: World, fixtures: dict[str, Any]) -> None:
            brokers = Brokers(world, {"auto_leader_rebalance_enable": False, **settings})
            for broker in range(1, count + 1):
                await brokers.start(broker, features=features)
            voters = count if count >= 3 else 1
            await brokers.until(lambda: all(len(brokers[one].metadata.replica.voters) == voters for one in brokers.ids))
            await test(brokers, **fixtures)

        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            with World(seed, odds=odds) as world:
                world.run(play(world, fixtures))

        asked = inspect.signature(test)
        fixtures = list(asked.parameters.values())[1:]
        run.__signature__ = asked.replace(parameters=fixtures)  # type: ignore[attr-defined]
        return run

    return decorate


async def _start(ports: Ports, settings: dict[str, Any], features: Features) -> Node:
    return await Startup(ports, Settings(**settings), features).run()
