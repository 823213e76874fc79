"""One JVM and one Spark session for all tests of a worker; the tests that use it carry the mark `spark`."""

import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tailrace.pipeline.kafka.cluster import Cluster
from tailrace.testing import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    from tailrace.pipeline import session

    spark = session("tests", master="local[2]", brief=True, keep_classes=False)
    yield spark
    spark.stop()


@pytest.fixture(scope="session")
def broker(tailrace_broker: Broker) -> Broker:
    return tailrace_broker


@pytest.fixture
def topic() -> str:
    """A name that no other test has."""
    return f"topic-{uuid.uuid4().hex[:8]}"


@pytest.fixture(scope="session")
def cluster(broker: Broker) -> Iterator[Cluster]:
    with Cluster(broker.bootstrap) as cluster:
        yield cluster
