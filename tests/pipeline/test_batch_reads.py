"""`spark.read.format("tailrace")` against a real broker."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from tailrace.pipeline.kafka.cluster import Cluster
from tailrace.records.compress import COMPRESSIONS
from tailrace.records.record import NewRecord
from tailrace.testing import Broker
from tests.pipeline.topics import FIRST_TIME, make_topic, numbered, shorten, write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


def read(spark: "SparkSession", broker: Broker, schema: str = "", **options: Any) -> "DataFrame":
    reader = spark.read.format("tailrace").option("kafka.bootstrap.servers", broker.bootstrap)
    reader = reader.options(**options)
    return (reader.schema(schema) if schema else reader).load()


def test_all_columns_of_all_compressions(spark: "SparkSession", broker: Broker, cluster: Cluster, topic: str) -> None:
    make_topic(cluster, topic, 2)
    told = []
    for number, codec in enumerate(COMPRESSIONS):
        record = NewRecord(
            b"v%d" % number, None if number % 2 else b"k", (("h", b"1"), ("h", None)), FIRST_TIME + number
        )
        write(cluster, topic, [record], partition=1, compression=codec)
        told.append((record.key, record.value, topic, 1, number, FIRST_TIME + number, 0, [("h", b"1"), ("h", None)]))
    rows = read(spark, broker, subscribe=topic, includeHeaders="true").orderBy("offset").collect()
    found = [
        (row.key, row.value, row.topic, row.partition, row.offset, round(row.timestamp.timestamp() * 1000),
         row.timestampType, [(one.key, one.value) for one in row.headers])
        for row in rows
    ]  # fmt: skip
    assert [(key and bytes(key), bytes(value), *rest) for key, value, *rest in found] == told


def test_only_what_lies_between_the_edges(spark: "SparkSession", broker: Broker, cluster: Cluster, topic: str) -> None:
    make_topic(cluster, topic)
    write(cluster, topic, numbered(50))
    offsets = '{"%s":{"0":%d}}'
    frame = read(
        spark, broker, subscribe=topic, startingOffsets=offsets % (topic, 10), endingOffsets=offsets % (topic, 20)
    )
    assert [row.offset for row in frame.select("offset").collect()] == list(range(10, 20))
    by_time = read(
        spark, broker, subscribePattern=f"{topic[:-1]}.", startingTimestamp=FIRST_TIME + 40_000,
        endingTimestamp=FIRST_TIME + 45_000,
    )  # fmt: skip
    assert [row.offset for row in by_time.collect()] == list(range(40, 45))


def test_filters_narrow_what_is_read(spark: "SparkSession", broker: Broker, cluster: Cluster, topic: str) -> None:
    make_topic(cluster, topic, 3)
    for partition in range(3):
        write(cluster, topic, numbered(30), partition=partition)
    frame = read(spark, broker, subscribe=topic)
    late = datetime.fromtimestamp((FIRST_TIME + 20_000) / 1000, UTC)
    narrow = frame.where("partition = 1 and offset < 25").where(frame.timestamp >= late)
    assert [(row.partition, row.offset) for row in narrow.collect()] == [(1, offset) for offset in range(20, 25)]
    assert narrow.rdd.getNumPartitions() == 1
    assert frame.where("topic = 'another'").count() == 0


def test_without_pushdown_it_reads_all_the_same(
    spark: "SparkSession", broker: Broker, cluster: Cluster, topic: str
) -> None:
    make_topic(cluster, topic)
    write(cluster, topic, numbered(5))
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "false")
    try:
        assert read(spark, broker, subscribe=topic).where("offset > 2").count() == 2
    finally:
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")


def test_a_schema_of_fewer_columns_and_pieces_of_a_partition(
    spark: "SparkSession", broker: Broker, cluster: Cluster, topic: str
) -> None:
    make_topic(cluster, topic)
    write(cluster, topic, numbered(100))
    frame = read(spark, broker, "offset bigint, value binary", subscribe=topic, minPartitions=4)
    assert frame.columns == ["offset", "value"]
    assert frame.rdd.getNumPartitions() == 4
    assert sorted(row.offset for row in frame.collect()) == list(range(100))


def test_what_retention_ate(spark: "SparkSession", broker: Broker, cluster: Cluster, topic: str) -> None:
    make_topic(cluster, topic)
    for number in range(5):
        write(cluster, topic, numbered(10, 10 * number))
    shorten(cluster, topic, 25)
    start = f'{{"{topic}":{{"0":3}}}}'
    with pytest.raises(Exception, match="from offset 3, but begins at 25"):
        read(spark, broker, subscribe=topic, startingOffsets=start).count()
    kept = read(spark, broker, subscribe=topic, startingOffsets=start, failOnDataLoss="false")
    assert kept.count() == 25


@pytest.mark.parametrize(
    ("schema", "options", "said"),
    [
        ("", {"subscribe": "never-made"}, "there is no topic never-made"),
        ("offset int", {"subscribe": "never-made"}, "offset is bigint, not int"),
        ("", {"subscribe": "never-made", "startingOfsets": "earliest"}, "did you mean startingOffsets"),
    ],
)
def test_what_bad_input_gets(
    spark: "SparkSession", broker: Broker, schema: str, options: dict[str, str], said: str
) -> None:
    with pytest.raises(Exception, match=said):
        read(spark, broker, schema, **options).collect()
