"""Members of `tailrace.client` and of librdkafka in one classic group: whoever leads it, they share the partitions."""

import asyncio
from collections import Counter
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tailrace.client.asyncio_driver import AsyncioDriver
from tailrace.client.cluster import Cluster
from tailrace.client.group_consumer import GroupConsumer, GroupOptions
from tailrace.model.addresses import Address
from tailrace.ports.clock import SystemClock
from tailrace.ports.net import SystemNet
from tailrace.ports.randomness import SystemRandom
from tailrace.testing import Broker

PARTITIONS = 6
DEADLINE_S = 40.0
RECORDS = [f"{number}".encode() for number in range(60)]


class Theirs:
    """A consumer of librdkafka, polled in a thread."""

    def __init__(self, bootstrap: str) -> None:
        settings = {
            "bootstrap.servers": bootstrap,
            "group.id": "g",
            "partition.assignment.strategy": "range",
            "auto.offset.reset": "earliest",
            "heartbeat.interval.ms": 200,
        }
        self._consumer = Consumer(settings)
        self._consumer.subscribe(["t"])
        self.assignment: list[int] = []
        self.values: list[bytes] = []

    async def read(self) -> None:
        message = await asyncio.to_thread(self._consumer.poll, 0.1)
        if message is not None and message.error() is None:
            self.values.append(message.value() or b"")
        self.assignment = [one.partition for one in self._consumer.assignment()]

    def close(self) -> None:
        self._consumer.close()


class Ours:
    def __init__(self, bootstrap: str) -> None:
        host, port = bootstrap.split(":")
        driver = AsyncioDriver(SystemNet(), SystemClock(), SystemRandom())
        self._cluster = Cluster(driver, [Address(host, int(port))])
        options = GroupOptions(heartbeat_interval_ms=200, session_timeout_ms=6000, assignors=("range",))
        self._consumer = GroupConsumer(self._cluster, "g", ["t"], options)
        self.values: list[bytes] = []

    @property
    def assignment(self) -> list[int]:
        return [one.partition for one in self._consumer.assignment]

    async def read(self) -> None:
        self.values += [one.value or b"" for one in await self._consumer.poll(timeout_s=0.1)]

    async def close(self) -> None:
        await self._consumer.close()
        self._cluster.close()


async def read_until(condition: Callable[[], bool], members: list[Ours | Theirs]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not condition():
            await asyncio.gather(*(one.read() for one in members))


def produce(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for number, value in enumerate(RECORDS):
        producer.produce("t", value, partition=number % PARTITIONS)
    assert producer.flush(DEADLINE_S) == 0


@pytest.mark.foreign
@pytest.mark.parametrize("first", ["ours", "theirs"])
def test_members_of_both_clients_share_a_topic(first: str) -> None:
    """The first member leads the group, and computes the assignment of all."""

    async def play(bootstrap: str) -> None:
        def shared() -> bool:
            owned = sorted(number for one in members for number in one.assignment)
            evenly = all(len(one.assignment) == PARTITIONS // len(members) for one in members)
            return owned == list(range(PARTITIONS)) and evenly

        kinds: list[type[Ours] | type[Theirs]] = [Ours, Theirs, Ours] if first == "ours" else [Theirs, Ours, Ours]
        members: list[Ours | Theirs] = []
        for kind in kinds:
            members.append(kind(bootstrap))
            await read_until(shared, members)
        await asyncio.to_thread(produce, bootstrap)
        await read_until(lambda: sum(len(one.values) for one in members) >= len(RECORDS), members)
        assert Counter(value for one in members for value in one.values) == Counter(RECORDS)
        assert [len(one.values) for one in members] == [20, 20, 20]
        for one in members:
            if isinstance(one, Ours):
                await one.close()
            else:
                await asyncio.to_thread(one.close)

    with Broker() as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.create_topics([NewTopic("t", PARTITIONS, 1)])["t"].result(DEADLINE_S)
        asyncio.run(play(broker.bootstrap))
