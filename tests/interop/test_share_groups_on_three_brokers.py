"""A share group of our client while a leader dies: what was accepted stays so, and the rest is delivered."""

import asyncio
import os
import signal
import uuid
from collections.abc import Callable, Iterator

import pytest

from benchmarks import kafka
from benchmarks.fetched import Missing
from tailrace.client.admin import change_group_settings, create_topics, describe_topic
from tailrace.client.cluster import Cluster
from tailrace.client.faults import NotAcknowledged
from tailrace.client.producer import Producer
from tailrace.client.share_consumer import ShareConsumer, ShareOptions
from tailrace.model.frozen import frozen
from tailrace.model.ids import PartitionName
from tailrace.testing import Cluster as Local
from tailrace.wire.messages.create_topics import NewTopic
from tests.interop.share_groups import QUICK, with_cluster

COUNT = 600
REPLICATED = """\
offsets.topic.replication.factor=3
share.coordinator.state.topic.replication.factor=3
share.coordinator.state.topic.min.isr=2
offsets.topic.num.partitions=3
share.coordinator.state.topic.num.partitions=3
"""


@frozen
class ThreeBrokers:
    bootstrap: str
    kill: Callable[[int], None]  # a broker, by its id


@pytest.fixture(scope="module", params=["tailrace", pytest.param("Apache Kafka", marks=pytest.mark.long)])
def brokers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreeBrokers]:
    if request.param == "tailrace":
        with Local(3, proxied=False, group_share_heartbeat_interval_ms=200) as local:
            yield ThreeBrokers(bootstrap=local.bootstrap, kill=local.kill)
        return
    try:
        kafka.jars()
    except Missing as missing:
        pytest.skip(str(missing))
    with kafka.cluster(tmp_path_factory.mktemp("kafka"), 3, QUICK + REPLICATED) as nodes:
        bootstrap = ",".join(f"{server.host}:{server.port}" for server in nodes.servers)
        yield ThreeBrokers(
            bootstrap=bootstrap, kill=lambda number: os.kill(nodes.servers[number - 1].pid, signal.SIGKILL)
        )


def test_a_leader_dies(brokers: ThreeBrokers) -> None:
    topic = f"t-{uuid.uuid4().hex[:8]}"

    async def work(cluster: Cluster) -> None:
        created = await create_topics(cluster, [NewTopic(name=topic, num_partitions=3, replication_factor=3)])
        assert created == {topic: None}
        await change_group_settings(cluster, topic, {"share.auto.offset.reset": "earliest"})
        async with Producer(cluster) as producer:
            for sent in [await producer.send(topic, b"%d" % one, partition=one % 3) for one in range(COUNT)]:
                await sent
        accepted: dict[tuple[PartitionName, int], None] = {}
        uncertain: dict[tuple[PartitionName, int], None] = {}
        options = ShareOptions(acknowledges="explicit", acquire_mode="record_limit")
        async with ShareConsumer(cluster, topic, [topic], options) as consumer:
            is_killed = False
            while len(accepted | uncertain) < COUNT:
                for message in await consumer.poll(7, 0.5):
                    place = (message.partition, message.offset)
                    assert place not in accepted, f"{message} was accepted before"
                    try:
                        await consumer.settle(message)
                        accepted[place] = None
                    except NotAcknowledged:
                        uncertain[place] = None
                if len(accepted) >= COUNT // 3 and not is_killed:
                    leader = (await describe_topic(cluster, topic)).partitions[0].leader_id
                    brokers.kill(leader)
                    is_killed = True
            assert is_killed
            assert await consumer.poll(1, 1.0) == [] or uncertain

    with_cluster(brokers.bootstrap, lambda cluster: asyncio.wait_for(work(cluster), 85))
