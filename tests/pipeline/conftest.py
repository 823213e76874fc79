"""One JVM and one Spark session for all tests of a worker; the tests that use it carry the mark `spark`."""

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tailrace.pipeline.kafka.cluster import Cluster
from tailrace.testing import Broker
from tests.pipeline.crash_places import crash_variables
from tests.pipeline.postgres_server import dsn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["dsn"]  # a fixture


@pytest.fixture(scope="session")
def crash_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a test writes the place at which a process of the Spark session is to die (see `crash_places`)."""
    return tmp_path_factory.mktemp("crash") / "place"


@pytest.fixture(scope="session")
def spark(crash_file: Path) -> "Iterator[SparkSession]":
    from tailrace.pipeline import session

    small = {"spark.sql.shuffle.partitions": "2", "spark.sql.warehouse.dir": str(crash_file.parent / "tables")}
    # Of the JVM and its workers; programs that tests start later are not to die.
    with pytest.MonkeyPatch.context() as patch:
        for name, value in crash_variables(crash_file).items():
            patch.setenv(name, value)
        spark = session("tests", master="local[2]", settings=small, brief=True, keep_classes=False)
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
