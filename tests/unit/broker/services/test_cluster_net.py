"""`tailrace.broker.services.cluster_net`: a client within a broker reaches every broker without its Kafka port."""

import asyncio
from typing import Any

import pytest

from tailrace.broker.node import Node
from tailrace.client.asyncio_driver import AsyncioDriver
from tailrace.client.cluster import Cluster, Limits
from tailrace.client.consumer import Consumer, Received
from tailrace.client.producer import Producer
from tailrace.cluster.features import METADATA_VERSION, SUPPORTED_FEATURES, LevelRange
from tailrace.model.addresses import Address
from tailrace.model.ids import PartitionName
from tests.unit.broker.simulated import KAFKA_PORT, Brokers, simulated

TOPICS = ("one", "two", "three")


def inside(node: Node, broker: int) -> Cluster:
    """A client within the process of this broker."""
    ports = node.ports
    driver = AsyncioDriver(node.services.cluster_net, ports.clock, ports.random, "inside")
    return Cluster(driver, [Address(f"b{broker}", KAFKA_PORT)], Limits(request_s=3.0, retry_s=20.0))


async def write_and_read(cluster: Cluster) -> list[bytes]:
    async with Producer(cluster) as producer:
        sent = [await producer.send(name, name.encode(), partition=0) for name in TOPICS]
        await asyncio.gather(*sent)
    received: list[Received] = []
    async with Consumer(cluster) as consumer:
        consumer.assign({PartitionName(name, 0): 0 for name in TOPICS})
        while len(received) < len(TOPICS):
            received += await consumer.poll()
    cluster.close()
    return sorted(one.value or b"" for one in received)


class NoPlainConnections:
    async def connect(self, *given: object) -> Any:
        raise AssertionError(f"a plain connection to {given[1:3]}")


async def make_topics(brokers: Brokers) -> None:
    for number, name in enumerate(TOPICS, 1):
        await brokers.make_topic(name, (number,))


@simulated()
async def test_own_requests_go_through_memory_and_others_through_the_client_lane(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make_topics(brokers)
    monkeypatch.setattr(brokers[1].services.cluster_net, "_net", NoPlainConnections())
    found = await brokers.machine(1).run(write_and_read(inside(brokers[1], 1)))
    assert found == sorted(name.encode() for name in TOPICS)


@simulated(features={**SUPPORTED_FEATURES, METADATA_VERSION: LevelRange(1, 1)})
async def test_below_the_level_of_the_client_lane_connections_are_plain(brokers: Brokers) -> None:
    await make_topics(brokers)
    assert await brokers.machine(1).run(write_and_read(inside(brokers[1], 1)))


@simulated()
async def test_a_client_goes_on_when_a_broker_restarts(brokers: Brokers) -> None:
    await make_topics(brokers)
    cluster = inside(brokers[1], 1)
    first, second = PartitionName("two", 0), 2

    async def write(count: int) -> None:
        async with Producer(cluster) as producer:
            for one in [await producer.send(first.topic, b"x", partition=0) for _ in range(count)]:
                await one

    await brokers.machine(1).run(write(5))
    brokers.kill(second)
    writing = asyncio.ensure_future(brokers.machine(1).run(write(5)))
    await brokers.elapse(1.0)
    await brokers.start(second)
    await writing
    await brokers.until(lambda: brokers.replica(second, "two").high_watermark >= 10)


@simulated()
async def test_connections_end_with_the_broker(brokers: Brokers) -> None:
    await make_topics(brokers)
    cluster = inside(brokers[1], 1)
    await brokers.machine(1).run(cluster.refresh(None))
    await brokers.machine(1).run(write_and_read(cluster))
    await brokers.stop(1)
