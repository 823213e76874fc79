"""`spark.readStream.format("tailrace")`: restarts, limits, starts that are remembered, offsets that others can see."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tailrace.pipeline.kafka.cluster import Cluster, TopicPartition
from tailrace.pipeline.kafka.offsets import commit_offsets, committed_offsets
from tailrace.testing import Broker
from tests.pipeline.topics import make_topic, numbered, shorten, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

pytestmark = pytest.mark.spark

Run = Callable[..., "StreamingQuery"]


@pytest.fixture
def run(spark: "SparkSession", broker: Broker, topic: str, tmp_path: Path) -> Run:
    """Read all that is there now into Parquet, from where the last run ended."""

    def run(**options: Any) -> "StreamingQuery":
        reader = spark.readStream.format("tailrace").option("kafka.bootstrap.servers", broker.bootstrap)
        frame = reader.options(**{"subscribe": topic, **options}).load().selectExpr("partition", "offset")
        writer = frame.writeStream.format("parquet").option("path", str(tmp_path / "out"))
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
        query.awaitTermination(60)
        return query

    return run


def offsets_read(spark: "SparkSession", tmp_path: Path) -> list[tuple[int, int]]:
    rows = spark.read.parquet(str(tmp_path / "out")).orderBy("partition", "offset").collect()
    return [(row.partition, row.offset) for row in rows]


def test_a_restart_goes_on_where_it_was(
    spark: "SparkSession", cluster: Cluster, topic: str, tmp_path: Path, run: Run
) -> None:
    make_topic(cluster, topic, 2)
    write(cluster, topic, numbered(10))
    first = run(startingOffsets="earliest", maxOffsetsPerTrigger=4, **{"kafka.group.id": f"lag-{topic}"})
    assert len(first.recentProgress) >= 3
    write(cluster, topic, numbered(10), partition=1)
    write(cluster, topic, numbered(5))
    run(startingOffsets="earliest", **{"kafka.group.id": f"lag-{topic}"})
    wanted = [(0, offset) for offset in range(15)] + [(1, offset) for offset in range(10)]
    assert offsets_read(spark, tmp_path) == wanted
    seen = committed_offsets(cluster, f"lag-{topic}", [TopicPartition(topic, 0)])
    assert seen[TopicPartition(topic, 0)] >= 10


def test_a_start_at_latest_is_remembered_under_the_query_id(
    spark: "SparkSession", cluster: Cluster, topic: str, tmp_path: Path, run: Run
) -> None:
    make_topic(cluster, topic)
    write(cluster, topic, numbered(10))
    # The query was born when ten records were there, and died before its first batch was in the checkpoint.
    commit_offsets(cluster, f"tailrace-spark-start-q-{topic}", {TopicPartition(topic, 0): 10})
    write(cluster, topic, numbered(3))
    run(queryId=f"q-{topic}")
    assert offsets_read(spark, tmp_path) == [(0, 10), (0, 11), (0, 12)]


def test_a_start_at_latest_without_a_name_is_refused(cluster: Cluster, topic: str, run: Run) -> None:
    make_topic(cluster, topic)
    with pytest.raises(Exception, match="needs the option queryId"):
        run()


def test_records_lost_between_two_runs(
    spark: "SparkSession", cluster: Cluster, topic: str, tmp_path: Path, run: Run
) -> None:
    make_topic(cluster, topic)
    write(cluster, topic, numbered(10))
    run(startingOffsets="earliest")
    for start in (10, 20):
        write(cluster, topic, numbered(10, start))
    shorten(cluster, topic, 20)
    with pytest.raises(Exception, match="was to be read from offset 10, but begins at 20"):
        run(startingOffsets="earliest")
    run(startingOffsets="earliest", failOnDataLoss="false")
    assert offsets_read(spark, tmp_path) == [(0, offset) for offset in (*range(10), *range(20, 30))]
