"""A stateful query moves from Spark's own `format("kafka")` to ours and back, by one word, and keeps its checkpoint."""

import json
import subprocess
import sys
from collections import defaultdict
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks.connector import Connector, connector
from benchmarks.fetched import Missing
from tailrace.pipeline.kafka.cluster import Cluster
from tailrace.testing import Broker
from tests.pipeline.format_switch_driver import Work
from tests.pipeline.topics import make_topic, numbered, write

pytestmark = [pytest.mark.long, pytest.mark.foreign]

PARTITIONS = 3
PER_PARTITION = 100


@pytest.fixture(scope="module")
def kafka_connector() -> Connector:
    try:
        return connector()
    except Missing as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("formats", [["kafka", "tailrace", "kafka", "tailrace"], ["tailrace", "kafka", "tailrace"]])
def test_state_and_offsets_move_with_the_query(
    broker: Broker, cluster: Cluster, topic: str, tmp_path: Path, kafka_connector: Connector, formats: list[str]
) -> None:
    make_topic(cluster, topic, PARTITIONS)
    for partition in range(PARTITIONS):
        write(cluster, topic, numbered(PER_PARTITION), partition=partition)
    work = Work(
        bootstrap=broker.bootstrap,
        topic=topic,
        checkpoint=str(tmp_path / "checkpoint"),
        formats=formats,
        per_batch=30,
        settings={**kafka_connector.settings, "spark.sql.shuffle.partitions": "2"},
    )
    told = json.loads(run(work, kafka_connector).splitlines()[-1])
    assert all(earlier < later for earlier, later in pairwise(told["ends"])), "each of them did some of the work"
    assert told["counted"] == by_hand()


def run(work: Work, kafka_connector: Connector) -> str:
    command = [sys.executable, "-m", "tests.pipeline.format_switch_driver", json.dumps(asdict(work))]
    ran = subprocess.run(command, env=kafka_connector.environment, capture_output=True, text=True, check=False)
    assert not ran.returncode, ran.stderr[-4000:]
    return ran.stdout


def by_hand() -> list[list[object]]:
    """Of every key: how many records, and the sum of their offsets."""
    found: dict[str, list[int]] = defaultdict(list)
    for offset, record in enumerate(numbered(PER_PARTITION)):
        assert record.key is not None
        found[record.key.decode()] += [offset] * PARTITIONS
    return [[key, len(offsets), sum(offsets)] for key, offsets in sorted(found.items())]
