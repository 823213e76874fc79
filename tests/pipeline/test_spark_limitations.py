"""What Spark cannot do with a source in Python gets a sentence, not silence."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tailrace.pipeline.jvm.error_reasons import reason
from tailrace.pipeline.kafka.cluster import Cluster
from tailrace.testing import Broker
from tests.pipeline.topics import make_topic, numbered, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def options(broker: Broker, cluster: Cluster, topic: str) -> str:
    make_topic(cluster, topic)
    write(cluster, topic, numbered(5))
    return f"OPTIONS ('kafka.bootstrap.servers' '{broker.bootstrap}', subscribe '{topic}')"


@pytest.fixture
def table(spark: "SparkSession", topic: str) -> Iterator[str]:
    name = topic.replace("-", "_")
    yield name
    spark.sql(f"DROP TABLE IF EXISTS {name}")


def refused(spark: "SparkSession", sql: str) -> str:
    with pytest.raises(Exception, match="PipelineFailed") as caught:
        spark.sql(sql).collect()
    return reason(caught.value)


def test_a_table_would_lose_its_options(spark: "SparkSession", options: str, table: str) -> None:
    said = refused(spark, f"CREATE TABLE {table} USING tailrace {options}")
    assert said.startswith("Spark would drop the options of CREATE TABLE")
    assert not spark.catalog.tableExists(table)


def test_a_table_with_columns_of_its_own_has_lost_them(spark: "SparkSession", options: str, table: str) -> None:
    spark.sql(f"CREATE TABLE {table} (value BINARY) USING tailrace {options}")
    assert refused(spark, f"SELECT * FROM {table}").startswith(
        "no option has arrived: Spark drops those of CREATE TABLE"
    )


def test_a_temporary_view_keeps_them(spark: "SparkSession", options: str, table: str) -> None:
    spark.sql(f"CREATE TEMPORARY VIEW {table} USING tailrace {options}")
    assert spark.table(table).count() == 5
    spark.catalog.dropTempView(table)


@pytest.mark.parametrize(
    ("sink", "mode", "said"),
    [
        ("tailrace", "append", "sink allowlist for Real-Time Mode"),
        ("console", "update", "not supported in Real-time Mode"),
    ],
)
def test_real_time_mode(
    spark: "SparkSession", broker: Broker, cluster: Cluster, topic: str, tmp_path: Path, sink: str, mode: str, said: str
) -> None:
    make_topic(cluster, topic)
    at = {"kafka.bootstrap.servers": broker.bootstrap}
    frame = spark.readStream.format("tailrace").options(**at, subscribe=topic, startingOffsets="earliest").load()
    writer = frame.select("value").writeStream.format(sink).outputMode(mode)
    writer = writer.options(**at, topic=topic) if sink == "tailrace" else writer
    with pytest.raises(Exception, match=said) as caught:
        writer.option("checkpointLocation", str(tmp_path)).trigger(realTime="5 seconds").start().awaitTermination(60)
    assert "REAL_TIME_MODE" in reason(caught.value)
