"""A cluster of three, each in a rack of its own: the main flows again, and what only a cluster can show.

Every topic here has three replicas, and the clients are given all three addresses. The cluster is shared: who kills a
broker starts it again.
"""

from collections.abc import Iterator

import pytest

from tailrace.testing import Cluster
from tests.interop.client import Client
from tests.interop.conftest import eventually
from tests.interop.feature import feature
from tests.interop.messages import Message, Reading, Sending
from tests.interop.shapes import TopicPlan
from tests.interop.test_one_writes_another_reads import test_matrix as test_matrix
from tests.interop.test_reading import test_beginning as test_beginning
from tests.interop.test_reading import test_by_time as test_by_time
from tests.interop.test_reading import test_delete_records as test_delete_records
from tests.interop.test_reading import test_list_offset as test_list_offset
from tests.interop.test_reading import test_long_poll as test_long_poll
from tests.interop.test_reading import test_watermarks as test_watermarks
from tests.interop.test_settings import test_broker_settings as test_broker_settings
from tests.interop.test_settings import test_change_takes_effect as test_change_takes_effect
from tests.interop.test_topics import test_auto_create as test_auto_create
from tests.interop.test_topics import test_create_assigned as test_create_assigned
from tests.interop.test_topics import test_create_partitions as test_create_partitions
from tests.interop.test_topics import test_delete as test_delete
from tests.interop.test_writing import test_acks as test_acks
from tests.interop.test_writing import test_idempotent as test_idempotent
from tests.interop.test_writing import test_large as test_large
from tests.interop.test_writing import test_order as test_order
from tests.interop.three_brokers import bootstrap as bootstrap
from tests.interop.three_brokers import clients as clients
from tests.interop.three_brokers import three_brokers
from tests.interop.three_brokers import topic as topic

RACKS = ("r1", "r2", "r3")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Leaders stay where they come to be, until somebody asks for an election."""
    yield from three_brokers(racks=RACKS, auto_leader_rebalance_enable=False)


@pytest.fixture
def led_by_2(name: str, bench: Client) -> str:
    """A topic with one partition on all brokers, which the second is to lead."""
    bench.create_assigned(name, [[2, 3, 1]])
    eventually(lambda: name in bench.list_topics() and bench.describe_topic(name).leaders == (2,))
    return name


def numbered(first: int, count: int) -> list[Message]:
    return [Message(value=b"%d" % number) for number in range(first, first + count)]


@feature("create a topic with three replicas: all are in sync", "create_topic", "describe_topic", "list_topics")
def test_replicas(client: Client, name: str) -> None:
    client.create_topic(name, TopicPlan(partitions=6, replication=3))
    eventually(lambda: name in client.list_topics())
    shape = client.describe_topic(name)
    assert [sorted(replicas) for replicas in shape.replicas] == [[1, 2, 3]] * 6
    assert [sorted(replicas) for replicas in shape.in_sync] == [[1, 2, 3]] * 6
    assert sorted(shape.leaders) == [1, 1, 2, 2, 3, 3]


@feature("write to every partition and read it back, whoever leads", "produce", "reader")
def test_every_partition(client: Client, name: str, bench: Client) -> None:
    bench.create_topic(name, TopicPlan(partitions=6, replication=3))
    eventually(lambda: name in bench.list_topics())
    for partition in range(6):
        client.produce(name, numbered(partition, 20), partition=partition)
    for partition in range(6):
        received = client.consume(name, 20, partition=partition)
        assert [one.value for one in received] == [b"%d" % number for number in range(partition, partition + 20)]


@feature("the leader is killed in the middle: nothing is lost, writing and reading go on", "produce", "reader")
def test_killed(client: Client, led_by_2: str, cluster: Cluster) -> None:
    client.produce(led_by_2, numbered(0, 100), Sending(idempotent=True))
    try:
        with client.reader(led_by_2, Reading()) as reader:
            before = reader.take(100)
            cluster.kill(2)
            client.produce(led_by_2, numbered(100, 100), Sending(idempotent=True))
            after = reader.take(100)
    finally:
        cluster.restart(2)
        cluster.wait_until_healthy()
    assert [one.value for one in before + after] == [message.value for message in numbered(0, 200)]


@feature("read from the replica in one's own rack (client.rack)", "consume_near")
def test_nearest(client: Client, led_by_2: str, bench: Client) -> None:
    messages = [Message(value=b"%1000d" % number) for number in range(100)]
    bench.produce(led_by_2, messages)

    def reads_at(rack: str, broker: int) -> bool:
        received, near = client.consume_near(led_by_2, 100, rack)
        assert [one.value for one in received] == [message.value for message in messages]
        return near == broker

    for rack, broker in (("r1", 1), ("r3", 3), ("r2", 2), ("", 2)):
        eventually(lambda rack=rack, broker=broker: reads_at(rack, broker))  # type: ignore[misc]  # once it follows


@feature("elect the preferred leader (ElectLeaders)", "elect_preferred", "describe_topic")
def test_elect(client: Client, led_by_2: str, cluster: Cluster) -> None:
    cluster.restart(2)
    cluster.wait_until_healthy()
    assert client.describe_topic(led_by_2).leaders != (2,)
    client.elect_preferred(led_by_2)
    eventually(lambda: client.describe_topic(led_by_2).leaders == (2,))


@feature("describe the metadata's quorum (DescribeQuorum)", "describe_quorum", "describe_cluster")
def test_quorum(client: Client) -> None:
    quorum = client.describe_quorum()
    assert quorum.leader == client.describe_cluster().controller
    assert sorted((*quorum.voters, *quorum.observers)) == [1, 2, 3]
