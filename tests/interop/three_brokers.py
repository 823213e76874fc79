"""For modules whose tests run on three brokers of their own, which they may kill.

Such a module imports the fixtures `bootstrap` and `clients`, and says in another one which settings its brokers have:

    @pytest.fixture(scope="module")
    def cluster() -> Iterator[Cluster]:
        yield from three_brokers(auto_leader_rebalance_enable=False)
"""

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tailrace.testing import Cluster
from tests.interop.client import Client
from tests.interop.conftest import clients_of, eventually
from tests.interop.shapes import TopicPlan


def three_brokers(**settings: Any) -> Iterator[Cluster]:
    if "TAILRACE_INTEROP_BOOTSTRAP" in os.environ:
        pytest.skip("these tests stop and start brokers of their own")
    with Cluster(3, proxied=False, **settings) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def bootstrap(cluster: Cluster) -> str:
    return cluster.bootstrap


@pytest.fixture(scope="module")
def clients(bootstrap: str) -> Iterator[Callable[[type[Client]], Client]]:
    yield from clients_of(bootstrap)


@pytest.fixture
def topic(name: str, bench: Client) -> str:
    """A topic with one partition and three replicas."""
    bench.create_topic(name, TopicPlan(replication=3))
    eventually(lambda: name in bench.list_topics())
    return name
