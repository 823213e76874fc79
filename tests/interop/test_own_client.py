"""Our own client over real sockets, against our broker and against Apache Kafka."""

import asyncio
import uuid
from pathlib import Path

import pytest

from tailrace.client.asyncio_driver import AsyncioDriver
from tailrace.client.batching import BatchLimits
from tailrace.client.blocking_driver import BlockingDriver
from tailrace.client.cluster import Cluster, Limits
from tailrace.client.consumer import Consumer, ConsumerOptions, Received
from tailrace.client.driver import run_blocking
from tailrace.client.faults import ClientError, SecurityRefused, Unavailable
from tailrace.client.offsets import EARLIEST, LATEST, commit_offsets, committed_offsets, offsets_at
from tailrace.client.producer import Producer, ProducerOptions
from tailrace.model.addresses import parse_addresses
from tailrace.model.ids import PartitionName
from tailrace.ports import TlsFiles, system_ports
from tailrace.testing import Broker
from tests.certificates import Authority
from tests.interop.share_groups import LIMITS, with_cluster

COUNT = 500
PARTITION = PartitionName("t", 0)


@pytest.fixture
def bootstrap(each_bootstrap: str) -> str:
    return each_bootstrap


@pytest.fixture
def topic() -> PartitionName:
    return PartitionName(f"t-{uuid.uuid4().hex[:8]}", 0)


async def produce(cluster: Cluster, topic: PartitionName, count: int, **options: object) -> None:
    async with Producer(cluster, ProducerOptions(**options)) as producer:  # type: ignore[arg-type]
        sent = [await producer.send(topic.topic, b"%d" % number, key=b"k", partition=0) for number in range(count)]
        assert [(await one).offset for one in sent] == list(range(count))


async def consume(cluster: Cluster, topic: PartitionName, count: int, **options: object) -> list[Received]:
    received: list[Received] = []
    async with Consumer(cluster, ConsumerOptions(**options)) as consumer:  # type: ignore[arg-type]
        consumer.assign({topic: 0})
        while len(received) < count:
            received += await consumer.poll()
    return received


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_is_written_is_read(bootstrap: str, topic: PartitionName, compression: str) -> None:
    async def work(cluster: Cluster) -> None:
        await produce(cluster, topic, COUNT, compression=compression, limits=BatchLimits(batch_bytes=2000))
        received = await consume(cluster, topic, COUNT)
        assert [one.value for one in received] == [b"%d" % number for number in range(COUNT)]
        assert {one.key for one in received} == {b"k"}

    with_cluster(bootstrap, work)


def test_transactions(bootstrap: str, topic: PartitionName) -> None:
    async def work(cluster: Cluster) -> None:
        name = f"x-{topic.topic}"
        async with Producer(cluster, ProducerOptions(transactional_id=name)) as producer:
            for turn in range(4):
                await producer.begin()
                for number in range(10):
                    await producer.send(topic.topic, b"%d" % (10 * turn + number), partition=0)
                await producer.flush()
                await producer.commit_offsets(f"g-{topic.topic}", {topic: turn})
                await (producer.abort() if turn % 2 else producer.commit())
        received = [int(one.value or b"") for one in await consume(cluster, topic, 20)]
        assert received == [*range(10), *range(20, 30)]
        assert len(await consume(cluster, topic, 40, reads_committed=False)) == 40
        assert await committed_offsets(cluster, f"g-{topic.topic}", [topic], stable=True) == {topic: 2}

    with_cluster(bootstrap, work)


def test_the_second_producer_of_a_transactional_id_fences_the_first(bootstrap: str, topic: PartitionName) -> None:
    async def work(cluster: Cluster) -> None:
        options = ProducerOptions(transactional_id=f"x-{topic.topic}")
        async with Producer(cluster, options) as first, Producer(cluster, options) as second:
            await first.begin()
            await first.send(topic.topic, b"first", partition=0)
            await first.flush()
            await second.begin()
            with pytest.raises(ClientError):
                await first.commit()
            await second.send(topic.topic, b"second", partition=0)
            await second.commit()
        assert [one.value for one in await consume(cluster, topic, 1)] == [b"second"]

    with_cluster(bootstrap, work)


def test_offsets(bootstrap: str, topic: PartitionName) -> None:
    async def work(cluster: Cluster) -> None:
        await produce(cluster, topic, 10)
        assert await offsets_at(cluster, {topic: EARLIEST}) == {topic: 0}
        assert await offsets_at(cluster, {topic: LATEST}) == {topic: 10}
        group = f"g-{topic.topic}"
        await commit_offsets(cluster, group, {topic: 7})
        assert await committed_offsets(cluster, group, [topic]) == {topic: 7}

    with_cluster(bootstrap, work)


def test_the_same_calls_without_an_event_loop(bootstrap: str, topic: PartitionName) -> None:
    cluster = Cluster(BlockingDriver(), parse_addresses(bootstrap), LIMITS)
    run_blocking(cluster.refresh([topic.topic], create=True))
    assert run_blocking(offsets_at(cluster, {topic: LATEST})) == {topic: 0}
    run_blocking(commit_offsets(cluster, f"g-{topic.topic}", {topic: 3}))
    assert run_blocking(committed_offsets(cluster, f"g-{topic.topic}", [topic])) == {topic: 3}
    cluster.close()


def test_tls(tmp_path: Path) -> None:
    authority, stranger = Authority(tmp_path), Authority(tmp_path, "stranger")
    with Broker(**authority.mutual_tls()) as broker:

        def cluster_of(truststore: str, keystore: str) -> Cluster:
            ports = system_ports()
            tls = ports.net.load_tls(TlsFiles(truststore=truststore, keystore=keystore))
            driver = AsyncioDriver(ports.net, ports.clock, ports.random, tls=tls)
            return Cluster(driver, parse_addresses(broker.bootstrap), Limits(request_s=5.0, retry_s=2.0))

        async def work() -> None:
            own = cluster_of(authority.truststore, authority.keystore("client"))
            await produce(own, PartitionName("t", 0), 100)
            assert len(await consume(own, PartitionName("t", 0), 100)) == 100
            own.close()
            with pytest.raises(SecurityRefused, match="the certificate is refused"):
                await cluster_of(stranger.truststore, authority.keystore("client")).refresh(None)
            with pytest.raises(Unavailable):
                await offsets_at(cluster_of(authority.truststore, stranger.keystore("foreign")), {PARTITION: LATEST})

        asyncio.run(work())
