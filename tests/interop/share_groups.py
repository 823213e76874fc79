"""Brokers with share groups, and what tests of them need: topics whose group reads from the start, and messages."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks import kafka
from benchmarks.fetched import Missing
from tailrace.client.admin import change_group_settings, create_topics
from tailrace.client.asyncio_driver import AsyncioDriver
from tailrace.client.cluster import Cluster, Limits
from tailrace.client.producer import Producer
from tailrace.client.share_admin import share_group_offsets
from tailrace.model.addresses import parse_addresses
from tailrace.model.ids import PartitionName
from tailrace.ports import system_ports
from tailrace.testing import Broker
from tailrace.wire.messages.create_topics import NewTopic

BROKERS = ("tailrace", pytest.param("Apache Kafka", marks=pytest.mark.long))
LIMITS = Limits(request_s=10.0, retry_s=30.0)
LOCK_S = 2.0  # of tests that wait for the end of a lock
QUICK = """\
group.share.min.heartbeat.interval.ms=100
group.share.heartbeat.interval.ms=200
group.share.assignment.interval.ms=0
group.share.min.record.lock.duration.ms=1000
"""


@contextmanager
def serving(name: str, folder: Path) -> Iterator[str]:
    """The address of one of `BROKERS`, whose groups are quick."""
    if name == "tailrace":
        with Broker(group_share_heartbeat_interval_ms=200) as broker:
            yield broker.bootstrap
        return
    with apache_kafka(folder, QUICK) as bootstrap:
        yield bootstrap


@contextmanager
def apache_kafka(folder: Path, settings: str) -> Iterator[str]:
    """The address of a broker of Apache Kafka; the test is skipped where there is none to run."""
    try:
        kafka.jars()
    except Missing as missing:
        pytest.skip(str(missing))
    with kafka.serving(folder, settings) as server:
        yield f"{server.host}:{server.port}"


def with_cluster(bootstrap: str, work: Callable[[Cluster], Awaitable[None]]) -> None:
    async def run() -> None:
        ports = system_ports()
        cluster = Cluster(AsyncioDriver(ports.net, ports.clock, ports.random), parse_addresses(bootstrap), LIMITS)
        try:
            async with asyncio.timeout(90):
                await work(cluster)
        finally:
            cluster.close()

    asyncio.run(run())


async def create(cluster: Cluster, topic: str, *, partitions: int = 1, lock_s: float | None = None) -> None:
    results = await create_topics(cluster, [NewTopic(name=topic, num_partitions=partitions, replication_factor=1)])
    assert results == {topic: None}
    lock = {} if lock_s is None else {"share.record.lock.duration.ms": str(int(lock_s * 1000))}
    await change_group_settings(cluster, topic, {"share.auto.offset.reset": "earliest", **lock})


async def produce(cluster: Cluster, topic: str, count: int) -> None:
    async with Producer(cluster) as producer:
        for sent in [await producer.send(topic, b"%d" % number, partition=0) for number in range(count)]:
            await sent


async def lag(cluster: Cluster, topic: str) -> int | None:
    return (await share_group_offsets(cluster, topic))[PartitionName(topic, 0)].lag
