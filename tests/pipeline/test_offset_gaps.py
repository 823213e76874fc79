"""Logs that have nothing where records were: compaction explains it, in a topic that asks for it. Else it is named."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tailrace.pipeline import audit
from tailrace.pipeline.histories.committing import commit_batch, open_or_create
from tailrace.pipeline.histories.coverage import unexplained_findings
from tailrace.pipeline.histories.manifest import ArchivedRange
from tailrace.pipeline.histories.writing import archive_range
from tailrace.pipeline.kafka.cluster import Cluster, TopicPartition
from tailrace.pipeline.kafka.fetching import OffsetRange
from tailrace.pipeline.kafka.transactions import end_transaction, init_transactions
from tailrace.testing import Broker
from tests.pipeline.damaging_proxy import damaging, without
from tests.pipeline.test_sink import write_one
from tests.pipeline.topics import make_topic, numbered, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def archived(broker: Broker, topic: str, folder: Path, until: int, lost: bytes = b"value 10") -> ArchivedRange:
    """The topic's first partition, from a broker that has lost a batch."""
    wanted = OffsetRange(partition=TopicPartition(topic, 0), start=0, end=until)
    with damaging(broker.bootstrap, without(lost)) as bootstrap, Cluster(bootstrap) as behind:
        return archive_range(behind, wanted, folder)


def three_batches(cluster: Cluster, topic: str, policy: str) -> None:
    make_topic(cluster, topic, policy=policy)
    for number in range(3):
        write(cluster, topic, numbered(10, 100 * number))


def gaps(one: ArchivedRange) -> list[tuple[int, int, str]]:
    return [(gap.first, gap.last, gap.reason) for gap in one.gaps]


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
def test_compaction_explains_it(broker: Broker, cluster: Cluster, topic: str, tmp_path: Path, policy: str) -> None:
    three_batches(cluster, topic, policy)
    one = archived(broker, topic, tmp_path, 30)
    assert (gaps(one), one.count, one.is_whole) == ([(10, 19, "compaction")], 20, True)
    assert unexplained_findings([one]) == []


def test_nothing_explains_it(broker: Broker, cluster: Cluster, topic: str, tmp_path: Path) -> None:
    three_batches(cluster, topic, "delete")
    one = archived(broker, topic, tmp_path, 30)
    assert (gaps(one), one.count, one.is_whole) == ([(10, 19, "unexplained")], 20, True)
    (found,) = unexplained_findings([one])
    assert (found.kind, found.topic, found.partition, found.first, found.last) == ("gap", topic, 0, 10, 19)
    assert "its topic is not compacted" in str(found)


@pytest.mark.spark
def test_an_audit_finds_it(spark: "SparkSession", broker: Broker, cluster: Cluster, topic: str, tmp_path: Path) -> None:
    three_batches(cluster, topic, "delete")
    open_or_create(tmp_path / "h")
    commit_batch(tmp_path / "h", [archived(broker, topic, tmp_path / "h", 30)])
    found = audit(spark, tmp_path / "h")
    assert [(one.kind, one.first, one.last) for one in found.findings] == [("gap", 10, 19)]
    assert found.partitions[0].explained == {"unexplained": 10}


def test_what_is_left_out_beside_it_keeps_its_reason(
    broker: Broker, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    make_topic(cluster, topic)
    for number in range(2):
        write(cluster, topic, numbered(2, 100 * number))
    transaction = init_transactions(cluster, topic, 60_000)
    write_one(cluster, transaction, topic, b"in a transaction")
    end_transaction(cluster, transaction, commit=False)
    explained = [(4, 4, "aborted"), (5, 5, "control")]
    assert gaps(archived(broker, topic, tmp_path / "whole", 6, b"no such value")) == explained
    assert gaps(archived(broker, topic, tmp_path / "less", 6, b"value 100")) == [(2, 3, "unexplained"), *explained]
