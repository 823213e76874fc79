"""For users' own tests: a broker or a cluster as a pytest fixture, there as soon as tailrace is installed.

def test_orders(tailrace_broker):
    producer = Producer({"bootstrap.servers": tailrace_broker.bootstrap})

def test_orders_survive(tailrace_cluster):
    tailrace_cluster.kill(tailrace_cluster.leader_of("orders", 0))

One broker serves the whole session, because nobody harms it. A cluster is there to be harmed: each test gets its own.
When such a test fails, its report shows how the brokers' logs end.
"""

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Final

import pytest

from tailrace.testing.broker import Broker

if TYPE_CHECKING:
    from tailrace.testing.cluster import Cluster

CLUSTER_FIXTURE: Final = "tailrace_cluster"


@pytest.fixture(scope="session")
def tailrace_broker() -> Iterator[Broker]:
    """One Tailrace broker for the whole test session, forgotten afterwards; use topic names of your own."""
    with Broker(fsync="never") as broker:
        yield broker


@pytest.fixture
def tailrace_cluster() -> "Iterator[Cluster]":
    """Three Tailrace brokers for this test alone, to kill, pause, cut apart and restart."""
    from tailrace.testing.cluster import Cluster

    with Cluster(3, fsync="never") as cluster:
        yield cluster


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    cluster = getattr(item, "funcargs", {}).get(CLUSTER_FIXTURE)
    if report.when == "call" and report.failed and cluster is not None:
        report.sections.append(("tailrace brokers' logs", cluster.logs()))
    return report
