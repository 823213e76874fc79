"""An archive reads from a replica that is compacted, and the audit from one that is not: no false alarm."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tailrace.model.settings import variable_name
from tailrace.pipeline import archive, audit
from tailrace.pipeline.kafka import cluster as pipeline
from tailrace.testing import Cluster
from tailrace.wire.messages.create_topics import CreateTopicsRequest, NewTopic, NewTopicConfig, ReplicaAssignment
from tests.pipeline.compacted_topics import (
    COMPACTED_TIMEOUT_S,
    EAGER,
    FULL_SEGMENT,
    SMALL_SEGMENTS,
    CompactionLog,
    tombstones,
    values,
)
from tests.pipeline.topics import write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.long]
KEYS = [f"key {number}" for number in range(12)]
LAGGARD = 3  # the broker that compacts nothing


@pytest.fixture
def logs() -> dict[int, CompactionLog]:
    return {broker: CompactionLog() for broker in (1, 2, 3)}


@pytest.fixture
def brokers(logs: dict[int, CompactionLog]) -> Iterator[Cluster]:
    settings = {**EAGER, "leader_imbalance_check_interval_seconds": 1}
    cluster = Cluster(3, fsync="never", on_log=lambda broker, line: logs[broker].take(line), **settings)
    cluster.broker(LAGGARD).variables[variable_name("log_cleaner_enable")] = "false"
    with cluster:
        yield cluster


def make_led_by_laggard(client: pipeline.Cluster, topic: str) -> None:
    settings = {**SMALL_SEGMENTS, "cleanup.policy": "compact"}
    wanted = NewTopic(
        name=topic,
        num_partitions=-1,
        replication_factor=-1,
        assignments=(ReplicaAssignment(partition=0, broker_ids=(LAGGARD, 1, 2)),),
        configs=tuple(NewTopicConfig(name=name, value=value) for name, value in settings.items()),
    )
    answer = client.call_any(CreateTopicsRequest(topics=(wanted,), timeout_ms=10_000))
    pipeline.check(answer.topics[0].error_code, f"make {topic}")


def wait_for_leader(brokers: Cluster, topic: str, broker: int) -> None:
    deadline = time.monotonic() + COMPACTED_TIMEOUT_S
    while brokers.leader_of(topic, 0) != broker:
        assert time.monotonic() < deadline, f"broker {broker} does not lead {topic}"


def test_replicas_that_are_compacted_at_different_times(
    spark: "SparkSession", brokers: Cluster, logs: dict[int, CompactionLog], topic: str, tmp_path: Path
) -> None:
    with pipeline.Cluster(brokers.bootstrap) as client:
        make_led_by_laggard(client, topic)
        for generation in range(3):
            write(client, topic, values(KEYS, generation))
        write(client, topic, tombstones(KEYS[:2]))
        upto = write(client, topic, [values(["end"], 0)[0]._replace(value=FULL_SEGMENT)])
        write(client, topic, [values(["end"], 1)[0]._replace(value=FULL_SEGMENT)])
        for broker in (1, 2):
            logs[broker].wait_for(topic, upto)
        brokers.stop(LAGGARD)
        archived = archive(spark, brokers.bootstrap, tmp_path / "h", topics=[topic], available_now=True)
        assert archived.records == len(KEYS) + 2
        brokers.restart(LAGGARD)
        wait_for_leader(brokers, topic, LAGGARD)
    found = audit(spark, tmp_path / "h", bootstrap=brokers.bootstrap)
    assert found.findings == ()
    superseded = [note for note in found.notes if "that were superseded" in note]
    assert [note.split(" records")[0] for note in superseded] == [f"{topic}-0: the log has 26"]
