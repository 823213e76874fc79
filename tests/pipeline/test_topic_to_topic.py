"""Rows of a source as they are, into another topic: which columns count, and which topic. No Spark."""

from typing import TYPE_CHECKING

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from tailrace.pipeline.failure import PipelineFailed
from tailrace.pipeline.kafka.cluster import Cluster
from tailrace.pipeline.sink.options import write_options
from tailrace.pipeline.sink.rows import check_schema
from tailrace.pipeline.sink.write_task import Attempt, write_rows
from tailrace.pipeline.source.batch import BatchReader
from tailrace.pipeline.source.options import read_options
from tailrace.records.record import NewRecord
from tailrace.testing import Broker
from tests.pipeline.topics import FIRST_TIME, make_topic, write

if TYPE_CHECKING:
    import pyarrow as pa

header = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
of_the_source = StructType(
    [
        StructField("key", BinaryType()), StructField("value", BinaryType()), StructField("topic", StringType()),
        StructField("partition", IntegerType()), StructField("offset", LongType()),
        StructField("timestamp", TimestampType()), StructField("timestampType", IntegerType()),
        StructField("headers", ArrayType(header)),
    ]
)  # fmt: skip


def rows(broker: Broker, topic: str) -> "list[pa.RecordBatch]":
    given = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic, "includeHeaders": "true"}
    reader = BatchReader(read_options(given, "batch"), of_the_source)
    return [rows for partition in reader.partitions() for rows in reader.read(partition)]


def test_rows_of_a_source_go_to_another_topic_without_a_select(broker: Broker, cluster: Cluster, topic: str) -> None:
    into = f"{topic}-copy"
    for name in (topic, into):
        make_topic(cluster, name, 2)
    write(cluster, topic, [NewRecord(b"v", b"k", (("h", b"1"),), FIRST_TIME)], partition=1)
    write(cluster, into, [NewRecord(b"before")], partition=1)
    sink = write_options({"kafka.bootstrap.servers": broker.bootstrap, "topic": into})
    check_schema(of_the_source, sink.topic)
    write_rows(sink, iter(rows(broker, topic)), Attempt(0, 0, "q", 0))
    [found] = rows(broker, into)
    read, [wanted] = found.slice(1).to_pylist(), rows(broker, topic)
    assert read == [{**wanted.to_pylist()[0], "topic": into, "offset": 1}]


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ("header", "a column header cannot be written; did you mean headers"),
        ("Key", "a column Key cannot be written; did you mean key"),
        ("customer", "there may be key, value, .*; leave it out with a select"),
    ],
)
def test_other_columns_are_refused_with_the_nearest_name(column: str, said: str) -> None:
    with pytest.raises(PipelineFailed, match=said):
        check_schema(StructType([*of_the_source.fields, StructField(column, StringType())]), "orders")
