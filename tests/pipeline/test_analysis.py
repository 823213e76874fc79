"""What a history says, and the page that shows it; JSON values as columns."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql.types import IntegerType, StructField, StructType

from tailrace.pipeline import analyze, archive, parse_json
from tailrace.pipeline.analysis.lag import COMMITTED_TOPIC
from tailrace.pipeline.kafka.cluster import Cluster, TopicPartition
from tailrace.pipeline.kafka.offsets import commit_offsets
from tailrace.records.record import NewRecord
from tailrace.testing import Broker
from tests.pipeline.report_pages import read, traces
from tests.pipeline.topics import FIRST_TIME, make_topic, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.spark
def test_tables_and_page(spark: "SparkSession", broker: Broker, cluster: Cluster, topic: str, tmp_path: Path) -> None:
    make_topic(cluster, topic, 2)
    late = (("sent-at", b"%d" % (FIRST_TIME - 70)), ("dead-letter-reason", b"too <old>"))
    write(cluster, topic, [NewRecord(b"x" * 10, b"a", late, FIRST_TIME)] * 3)
    write(cluster, topic, [NewRecord(b"x" * 30, b"b", (), FIRST_TIME + 2000)], partition=1)
    archive(spark, broker.bootstrap, tmp_path / "h", topics=[topic], available_now=True)
    found = {
        answer.title.split(",")[0]: answer for answer in analyze(spark, tmp_path / "h", report=tmp_path / "r.html")
    }
    assert found["Topics"].rows[0][:3] == (topic, 4, 60)
    assert [row[1] for row in found["Throughput"].rows] == [3.0, 1.0]
    assert found["Sizes of values"].rows == ((topic, 10, 30, 30, 30),)
    assert found["Partitions"].rows == ((f"{topic}-0", 3, 1.5), (f"{topic}-1", 1, 0.5))
    assert found["Most frequent keys"].rows[0] == (topic, "a", 3, 75.0)
    assert found["Latency from the header sent-at to the record's timestamp"].rows == ((topic, 70, 70, 70, 70),)
    assert found["Dead letters by reason"].rows == ((topic, "too <old>", 3),)
    page = read((tmp_path / "r.html").read_text())
    assert "too <old>" in page.text
    assert (page.loads, list(page.figures)) == ([], ["over-time", "sizes", "shares"])


@pytest.mark.spark
def test_how_far_groups_were_behind(
    spark: "SparkSession", broker: Broker, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    """A group keeps up, stops, and falls behind; another's offsets were taken back."""
    make_topic(cluster, topic)
    now_ms = int(time.time() * 1000)
    write(cluster, topic, [NewRecord(b"v", b"\xff\xfe", timestamp=now_ms - 60_000)] * 10)
    commit_offsets(cluster, f"{topic}-group", {TopicPartition(topic, 0): 8})
    write(cluster, topic, [NewRecord(b"v", b"\xff\xfe", timestamp=now_ms + 60_000)] * 20)
    topics = [topic, COMMITTED_TOPIC]
    archive(spark, broker.bootstrap, tmp_path / "h", topics=topics, available_now=True)
    found = analyze(spark, tmp_path / "h", report=tmp_path / "r.html")
    (lag,) = (answer for answer in found if answer.title.startswith("Consumer lag"))
    ours = [row[3] for row in lag.rows if row[1] == f"{topic}-group"]
    assert (ours[0], ours[-1]) == (2, 22)
    assert lag.rows == tuple(sorted(lag.rows, key=lambda row: (row[1], row[2], row[0])))
    trace = traces(read((tmp_path / "r.html").read_text()), "over-time")[f"{topic}-group on {topic}"]
    assert (trace["y"][0], trace["y"][-1]) == (2, 22)
    assert [answer.rows[0][:2] for answer in found if answer.title == "Most frequent keys"] == [(topic, "0xFFFE")]


@pytest.mark.spark
def test_partitions_without_records_have_their_share(
    spark: "SparkSession", broker: Broker, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    make_topic(cluster, topic, 12)
    write(cluster, topic, [NewRecord(b"x", timestamp=FIRST_TIME)] * 6, partition=10)
    archive(spark, broker.bootstrap, tmp_path / "h", topics=[topic], available_now=True)
    (found,) = (answer for answer in analyze(spark, tmp_path / "h") if answer.title == "Partitions")
    assert found.rows[8:11] == ((f"{topic}-8", 0, 0.0), (f"{topic}-9", 0, 0.0), (f"{topic}-10", 6, 12.0))


@pytest.mark.spark
def test_json_with_and_without_a_schema(spark: "SparkSession") -> None:
    told = [(b"k", b'{"total": 3}'), (b"k", b"{oops"), (b"k", None), (b"k", b'{"total": "many"}')]
    frame = spark.createDataFrame(told, "key binary, value binary")
    rows, bad = parse_json(frame, "total int")
    assert [row.data.total if row.data else None for row in rows.collect()] == [3, None]
    assert [bytes(row.value) for row in bad.collect()] == [b"{oops", b'{"total": "many"}']
    loose, broken = parse_json(frame)
    assert [row.total for row in loose.selectExpr("variant_get(data, '$.total', 'string') as total").collect()] == [
        "3", None, "many",
    ]  # fmt: skip
    only = broken.collect()
    assert [(bytes(row.value), row.headers[0].key, bytes(row.headers[0].value)) for row in only] == [
        (b"{oops", "quarantine-reason", b"no JSON")
    ]


@pytest.mark.spark
def test_an_empty_value_is_no_json_and_a_schema_may_be_a_struct(spark: "SparkSession") -> None:
    told = [(b"k", b'{"total": 3}'), (b"k", b""), (b"k", b" "), (b"k", None), (b"k", b"3")]
    frame = spark.createDataFrame(told, "key binary, value binary")
    struct = StructType([StructField("total", IntegerType(), nullable=False)])
    for schema, said in (("total int", "total int"), (struct, "struct<total:int>"), (None, "")):
        rows, bad = parse_json(frame, schema)
        reason = f"no JSON of {said}".encode() if said else b"no JSON"
        wanted = [b"", b" ", b"3"] if said else [b"", b" "]
        found = [(bytes(row.value), bytes(row.headers[0].value)) for row in bad.collect()]
        assert found == [(value, reason) for value in wanted]
        assert rows.count() == len(told) - len(wanted)
    assert struct.names == ["total"]  # the caller's, untouched
