"""One JVM and one Spark session for all tests of a worker; the tests that use it carry the mark `spark`."""

import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tailrace.pipeline import crash_points
from tailrace.pipeline.kafka.cluster import Cluster
from tailrace.testing import Broker
from tests.pipeline.postgres_server import dsn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["dsn"]  # a fixture


@pytest.fixture(scope="session")
def crash_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a test says at which place a process shall die; Spark's workers know of it from the start."""
    return tmp_path_factory.mktemp("crash") / "place"


@pytest.fixture(scope="session")
def spark(crash_file: Path) -> "Iterator[SparkSession]":
    from tailrace.pipeline import session

    # For the JVM and its workers, not for this process, which shall not die.
    os.environ[crash_points.VARIABLE] = str(crash_file)
    small = {"spark.sql.shuffle.partitions": "2", "spark.sql.warehouse.dir": str(crash_file.parent / "tables")}
    spark = session("tests", master="local[2]", settings=small, brief=True, keep_classes=False)
    del os.environ[crash_points.VARIABLE]
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
