"""Apache Kafka in our broker's place. Without Java or Maven, or when its jars cannot be had, tests skip and say so."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from benchmarks import kafka
from benchmarks.fetched import Missing
from tailrace.pipeline.kafka.cluster import Cluster

KEEP_ALL = "log.retention.ms=-1\n"  # tests write records of 2023, which would be gone within minutes


@dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere:
    """As much of a broker as tests of the pipeline ask for."""

    bootstrap: str


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Elsewhere]:
    try:
        kafka.jars()
    except Missing as missing:
        pytest.skip(str(missing))
    with kafka.serving(tmp_path_factory.mktemp("kafka"), KEEP_ALL) as server:
        yield Elsewhere(bootstrap=f"{server.host}:{server.port}")


@pytest.fixture(scope="session")
def cluster(broker: Elsewhere) -> Iterator[Cluster]:
    with Cluster(broker.bootstrap) as cluster:
        yield cluster
