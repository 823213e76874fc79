"""Groups of a cluster: members find the coordinator wherever it is, and again when it is killed."""

from collections.abc import Iterator

import pytest

from tailrace.broker.coordination.coordinator import partition_of
from tailrace.model.topics import OFFSETS_TOPIC
from tailrace.testing import Cluster
from tests.interop.client import Client
from tests.interop.conftest import eventually
from tests.interop.drivers.confluent import Confluent
from tests.interop.feature import feature
from tests.interop.member import soon
from tests.interop.shapes import TopicPlan
from tests.interop.test_groups import PARTITIONS, everything, fill, read, shared
from tests.interop.test_groups import group as group
from tests.interop.test_groups import test_cooperative as test_cooperative
from tests.interop.test_groups import test_killed as test_killed
from tests.interop.test_groups import test_range as test_range
from tests.interop.test_groups import test_roundrobin as test_roundrobin
from tests.interop.test_groups import test_static as test_static
from tests.interop.three_brokers import bootstrap as bootstrap
from tests.interop.three_brokers import clients as clients
from tests.interop.three_brokers import three_brokers


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    yield from three_brokers()


@pytest.fixture
def topic(name: str, bench: Client) -> str:
    bench.create_topic(name, TopicPlan(partitions=PARTITIONS, replication=3))
    eventually(lambda: name in bench.list_topics())
    return name


@feature("the coordinator is killed: both members go on, every message is read, no commit is lost", "member")
def test_coordinator_killed(client: Client, topic: str, group: str, bench: Client, cluster: Cluster) -> None:
    kill_coordinator(client, topic, group, bench, cluster, "range")


@feature("the same with members of the consumer protocol (KIP-848)", "member", "consumer protocol")
def test_coordinator_of_consumers_killed(
    client: Client, topic: str, group: str, bench: Client, cluster: Cluster
) -> None:
    kill_coordinator(client, topic, group, bench, cluster, "consumer")


def kill_coordinator(client: Client, topic: str, group: str, bench: Client, cluster: Cluster, strategy: str) -> None:
    fill(bench, topic, 10)
    with client.member(topic, group, strategy) as first, client.member(topic, group, strategy) as second:
        soon(lambda: shared(first, second))
        soon(lambda: bench.committed(group, topic) == dict.fromkeys(everything, 10))
        partition = partition_of(group, len(bench.describe_topic(OFFSETS_TOPIC).leaders))
        coordinator = cluster.leader_of(OFFSETS_TOPIC, partition)
        cluster.kill(coordinator)
        try:
            fill(bench, topic, 10)
            soon(lambda: len(dict.fromkeys(read(first, second))) == 20 * PARTITIONS)
            last = dict(read(first, second))
            # librdkafka's admin client waits for a coordinator or controller that was named to it, even for a dead one.
            soon(lambda: cluster.leader_of(OFFSETS_TOPIC, partition) != coordinator)
            soon(
                lambda: all(at > last[one] for one, at in Confluent(cluster.bootstrap).committed(group, topic).items())
            )
        finally:
            cluster.restart(coordinator)
            cluster.wait_until_healthy()
