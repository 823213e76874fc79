"""Transactions on a cluster of three, whose coordinator is killed in the middle of one."""

from collections.abc import Iterator

import pytest

from tailrace.broker.coordination.coordinator import partition_of
from tailrace.model.topics import TRANSACTIONS_TOPIC
from tailrace.testing import Cluster
from tests.interop.client import Client
from tests.interop.conftest import eventually
from tests.interop.feature import feature
from tests.interop.shapes import TopicPlan
from tests.interop.test_transactions import PARTITIONS, committed
from tests.interop.test_transactions import test_abort as test_abort
from tests.interop.test_transactions import test_consume_transform_produce as test_consume_transform_produce
from tests.interop.test_transactions import test_fence as test_fence
from tests.interop.test_transactions import transaction as transaction
from tests.interop.three_brokers import bootstrap as bootstrap
from tests.interop.three_brokers import clients as clients
from tests.interop.three_brokers import three_brokers

KEPT_IN = 3  # partitions


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    yield from three_brokers(transaction_state_log_num_partitions=KEPT_IN)


@pytest.fixture
def topic(name: str, bench: Client) -> str:
    """A topic with two partitions and three replicas."""
    bench.create_topic(name, TopicPlan(partitions=PARTITIONS, replication=3))
    eventually(lambda: name in bench.list_topics())
    return name


# kafka-python 3.0 forgets the request that it could not send to a coordinator which refuses connections.
@feature(
    "the coordinator is killed in the middle of a transaction, which is committed all the same",
    "transactor",
    "asks the next coordinator again",
)
def test_coordinator_killed(client: Client, name: str, transaction: str, cluster: Cluster, bench: Client) -> None:
    with client.transactor(transaction) as producer:
        coordinator = cluster.leader_of(TRANSACTIONS_TOPIC, partition_of(transaction, KEPT_IN))
        others = [broker for broker in cluster.ids if broker != coordinator]
        bench.create_assigned(name, [[one, *(broker for broker in cluster.ids if broker != one)] for one in others])
        eventually(lambda: name in bench.list_topics())
        producer.begin()
        producer.write(name, b"before")
        cluster.kill(coordinator)
        try:
            producer.write(name, b"after", partition=1)
            producer.commit()
            producer.begin()
            producer.write(name, b"next")
            producer.commit()
        finally:
            cluster.restart(coordinator)
            cluster.wait_until_healthy()
    assert committed(client, name, 2) == [b"before", b"next"]
    assert committed(client, name, 1, partition=1) == [b"after"]
