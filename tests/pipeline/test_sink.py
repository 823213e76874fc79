"""`df.write` and `df.writeStream.format("tailrace")`, at least once and exactly once, against a real broker."""

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from kafka.partitioner.default import murmur2

from tailrace.pipeline.failure import PipelineFailed
from tailrace.pipeline.kafka.cluster import Cluster, TopicPartition
from tailrace.pipeline.kafka.fetching import OffsetRange, fetch
from tailrace.pipeline.kafka.offsets import end_offsets
from tailrace.pipeline.kafka.transactions import Transaction, add_partitions, init_transactions, transaction_state
from tailrace.pipeline.sink.committing import _decision, abort_all, commit_all, complete_decided
from tailrace.pipeline.sink.options import WriteOptions, write_options
from tailrace.pipeline.sink.progress import read_progress, transaction_name, write_progress
from tailrace.pipeline.sink.write_task import Attempt, TaskCommitMessage, write_rows
from tailrace.records.opened import open_batch
from tailrace.records.record import Record
from tailrace.testing import Broker
from tailrace.wire.messages.list_transactions import ListTransactionsRequest
from tests.pipeline.topics import make_topic, numbered, write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

spark_only = pytest.mark.spark
CARRIED_OUT_TIMEOUT_S = 20.0


def records(
    cluster: Cluster, topic: str, partition: int = 0, *, start: int = 0, committed: bool = True
) -> list[Record]:
    """All that a reader sees of a partition, by the slow way."""
    of = TopicPartition(topic, partition)
    end = end_offsets(cluster, [of], committed=committed)[of]
    return [
        record
        for chosen in fetch(cluster, OffsetRange(partition=of, start=start, end=end), committed=committed)
        for place, header in chosen.batches
        for record in open_batch(bytes(chosen.data[place : place + header.size]))
    ]


def save(frame: "DataFrame", broker: Broker, **options: Any) -> None:
    writer = frame.write.format("tailrace").mode("append").option("kafka.bootstrap.servers", broker.bootstrap)
    writer.options(**options).save()


@spark_only
def test_all_columns_are_written(spark: "SparkSession", broker: Broker, cluster: Cluster, topic: str) -> None:
    make_topic(cluster, topic, 3)
    frame = spark.sql(
        "select 'k' as key, encode('ä', 'utf-8') as value, 2 as partition, "
        "timestamp_millis(1700000000123) as timestamp, array(named_struct('key', 'h', 'value', encode('1', 'utf-8')), "
        "named_struct('key', 'n', 'value', null)) as headers"
    )
    save(frame, broker, topic=topic, **{"kafka.compression.type": "zstd"})
    wanted = Record(0, 1_700_000_000_123, b"k", "ä".encode(), (("h", b"1"), ("n", None)))
    assert records(cluster, topic, 2) == [wanted]


@spark_only
def test_rows_go_where_their_keys_belong(spark: "SparkSession", broker: Broker, cluster: Cluster, topic: str) -> None:
    make_topic(cluster, topic, 3)
    frame = spark.range(0, 100, 1, 1).selectExpr(
        f"'{topic}' as topic", "cast(id as string) as key", "cast(id as string) as value"
    )
    save(frame, broker)
    for partition in range(3):
        keys = [record.key for record in records(cluster, topic, partition)]
        assert keys == [b"%d" % n for n in range(100) if (murmur2(b"%d" % n) & 0x7FFFFFFF) % 3 == partition]


@spark_only
@pytest.mark.parametrize(
    ("sql", "options", "said"),
    [
        ("select 'x' as value", {}, "no topic to write to"),
        ("select 1 as value", {"topic": "t"}, "the column value is int; it has to be binary or string"),
        ("select 'x' as value, 1 as colour", {"topic": "t"}, "a column colour cannot be written; there may be key"),
        ("select 'x' as key", {"topic": "t"}, "no column value; it is required"),
        ("select 'x' as value", {"topic": "t", "exactlyOnce": "true"}, "needs the option sinkId"),
        ("select 'x' as value", {"topic": "t", "tpic": "t"}, "did you mean topic"),
        ("select 'x' as value", {"topic": "never-made"}, "there is no topic never-made"),
    ],
)
def test_what_bad_input_gets(
    spark: "SparkSession", broker: Broker, sql: str, options: dict[str, str], said: str
) -> None:
    with pytest.raises(Exception, match=said):
        save(spark.sql(sql), broker, **options)


@spark_only
def test_a_stream_is_written_exactly_once_over_restarts(
    spark: "SparkSession", broker: Broker, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    source, target = f"{topic}-in", f"{topic}-out"
    make_topic(cluster, source, 2)
    make_topic(cluster, target)

    def run() -> None:
        reader = spark.readStream.format("tailrace").option("kafka.bootstrap.servers", broker.bootstrap)
        frame = reader.option("subscribe", source).option("startingOffsets", "earliest").load().select("key", "value")
        writer = frame.writeStream.format("tailrace").option("kafka.bootstrap.servers", broker.bootstrap)
        writer = writer.option("topic", target).option("exactlyOnce", "true").option("sinkId", topic)
        query = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
        query.awaitTermination(60)

    for number in range(2):
        for partition in range(2):
            write(cluster, source, numbered(10, 10 * number), partition=partition)
        run()
    # A driver that died after the last batch's commit, and before Spark wrote that down, does it again.
    newest = max(int(path.name) for path in (tmp_path / "commits").iterdir() if path.name.isdecimal())
    for name in (str(newest), f".{newest}.crc"):
        (tmp_path / "commits" / name).unlink()
    run()
    assert values_in_topic(cluster, target) == sorted([b"value %d" % number for number in range(20)] * 2)


@spark_only
def test_a_batch_write_with_a_job_id_is_written_once(
    spark: "SparkSession", broker: Broker, cluster: Cluster, topic: str
) -> None:
    make_topic(cluster, topic)
    for job in ("monday", "monday", "tuesday"):
        save(spark.sql("select 'x' as value"), broker, topic=topic, exactlyOnce="true", sinkId=topic, jobId=job)
    assert values_in_topic(cluster, topic) == [b"x", b"x"]


@pytest.fixture
def sink(broker: Broker, topic: str) -> WriteOptions:
    given = {"kafka.bootstrap.servers": broker.bootstrap, "topic": topic, "exactlyOnce": "true", "sinkId": topic}
    return write_options(given)


Task = Callable[..., TaskCommitMessage]


@pytest.fixture
def task(cluster: Cluster, sink: WriteOptions, topic: str) -> Task:
    """What a task does, without Spark: a record in a transaction that is left open."""
    make_topic(cluster, topic)

    def run(number: int, batch: int = 0, attempt: int = 0, query: str = "q") -> TaskCommitMessage:
        transaction = init_transactions(cluster, transaction_name(sink.sink_id, number, attempt), sink.timeout_ms)
        write_one(cluster, transaction, topic, b"task %d batch %d" % (number, batch))
        return TaskCommitMessage(number, attempt, query, batch, 1, (topic,), transaction.producer)

    return run


def write_one(cluster: Cluster, transaction: Transaction, topic: str, value: bytes, partition: int = 0) -> None:
    import numpy as np

    from tailrace.pipeline.arrow.encode import Rows
    from tailrace.pipeline.kafka.producer import Producer

    producer = Producer(cluster, transaction.producer, transaction=transaction)
    rows = Rows(key=pa.array([None], pa.binary()), value=pa.array([value]), timestamp=np.array([1]))
    producer.write(TopicPartition(topic, partition), rows)
    producer.flush()


def carried_out(cluster: Cluster) -> None:
    """Wait until brokers have done what they were told: they say that a transaction is decided before it is ended."""
    told = ListTransactionsRequest(state_filters=("PrepareCommit", "PrepareAbort"), producer_id_filters=())
    deadline = time.monotonic() + CARRIED_OUT_TIMEOUT_S
    while left := cluster.call_any(told).transaction_states:
        assert time.monotonic() < deadline, f"transactions that were ended have not: {left}"


def values_in_topic(cluster: Cluster, topic: str) -> list[bytes]:
    """The values that readers of committed records see."""
    carried_out(cluster)
    return sorted(record.value or b"" for record in records(cluster, topic))


def test_nothing_is_seen_before_the_driver_commits(
    cluster: Cluster, sink: WriteOptions, topic: str, task: Task
) -> None:
    messages = [task(0), task(1)]
    assert values_in_topic(cluster, topic) == []
    commit_all(sink, messages)
    assert values_in_topic(cluster, topic) == [b"task 0 batch 0", b"task 1 batch 0"]
    commit_all(sink, messages)  # Spark may ask twice
    assert len(values_in_topic(cluster, topic)) == 2


def test_a_batch_that_is_given_up_shows_nothing(cluster: Cluster, sink: WriteOptions, topic: str, task: Task) -> None:
    abort_all(sink, [task(0), None])
    assert values_in_topic(cluster, topic) == []
    assert transaction_state(cluster, transaction_name(sink.sink_id, 0, 0))[0] in ("PrepareAbort", "CompleteAbort")


def test_a_crash_between_two_ends_is_completed(cluster: Cluster, sink: WriteOptions, topic: str, task: Task) -> None:
    from tailrace.pipeline.kafka.transactions import end_transaction

    messages = [task(0), task(1), task(2)]
    decided = _decision(cluster, sink, messages, 0)
    write_progress(cluster, sink.sink_id, topic, decided)
    assert messages[0].producer is not None
    end_transaction(cluster, Transaction(transaction_name(sink.sink_id, 0, 0), messages[0].producer), commit=True)
    # Here the driver died. The batch is run again: its tasks see that it is decided, and write nothing.
    again = [TaskCommitMessage(number, 0, "q", 0, 0, (), None, is_decided=True) for number in range(3)]
    commit_all(sink, again)
    assert values_in_topic(cluster, topic) == [b"task %d batch 0" % number for number in range(3)]
    progress = read_progress(cluster, sink.sink_id)
    assert progress is not None
    assert (progress.state, progress.batch) == ("done", 0)


def test_the_next_batch_and_another_query_go_on(cluster: Cluster, sink: WriteOptions, topic: str, task: Task) -> None:
    commit_all(sink, [task(0)])
    commit_all(sink, [task(0, batch=1)])
    commit_all(sink, [task(0, batch=0, query="another")])
    assert values_in_topic(cluster, topic) == [b"task 0 batch 0", b"task 0 batch 0", b"task 0 batch 1"]


def test_an_attempt_that_lost_is_aborted(cluster: Cluster, sink: WriteOptions, topic: str, task: Task) -> None:
    winner, _ = task(0, attempt=0), task(0, attempt=1)
    commit_all(sink, [winner])
    assert values_in_topic(cluster, topic) == [b"task 0 batch 0"]
    assert transaction_state(cluster, transaction_name(sink.sink_id, 0, 1))[0] in ("PrepareAbort", "CompleteAbort")


def test_a_task_that_was_fenced_is_not_committed(cluster: Cluster, sink: WriteOptions, topic: str, task: Task) -> None:
    fenced = task(0)
    add_partitions(
        cluster, init_transactions(cluster, transaction_name(sink.sink_id, 0, 0), 60_000), [TopicPartition(topic, 0)]
    )
    with pytest.raises(PipelineFailed, match="Nothing of this batch was committed"):
        commit_all(sink, [fenced, task(1)])
    assert values_in_topic(cluster, topic) == []


def rows_of(*values: bytes, topics: Sequence[str] = ()) -> pa.RecordBatch:
    return pa.record_batch({"value": pa.array(values)} | ({"topic": pa.array(topics)} if topics else {}))


def test_another_query_finishes_what_was_decided_before_its_tasks_run(
    cluster: Cluster, sink: WriteOptions, topic: str, task: Task
) -> None:
    from pyspark.sql.types import BinaryType, StructType

    from tailrace.pipeline.sink.writer import StreamWriter

    write_progress(cluster, sink.sink_id, topic, _decision(cluster, sink, [task(0), task(1)], 0))
    # Here the driver died. Another query takes its place, under the same sinkId.
    with pytest.raises(PipelineFailed, match="two queries must not share one"):
        write_rows(sink, iter([rows_of(b"too early")]), Attempt(0, 0, "another", 0))
    StreamWriter(sink, StructType().add("value", BinaryType()))
    written = [write_rows(sink, iter([rows_of(b"new %d" % n)]), Attempt(n, 0, "another", 0)) for n in range(2)]
    assert values_in_topic(cluster, topic) == [b"task 0 batch 0", b"task 1 batch 0"]
    commit_all(sink, written)
    assert values_in_topic(cluster, topic) == [b"new 0", b"new 1", b"task 0 batch 0", b"task 1 batch 0"]


def test_what_is_anothers_by_now_is_not_committed(cluster: Cluster, sink: WriteOptions, topic: str, task: Task) -> None:
    write_progress(cluster, sink.sink_id, topic, _decision(cluster, sink, [task(0), task(1)], 0))
    task(0, query="another")
    with pytest.raises(PipelineFailed, match="another producer uses its transactional ids"):
        complete_decided(sink)
    assert values_in_topic(cluster, topic) == []
    assert transaction_state(cluster, transaction_name(sink.sink_id, 0, 0))[0] == "Ongoing"


@pytest.mark.parametrize("exactly_once", ["true", "false"])
def test_rows_name_their_topics(broker: Broker, cluster: Cluster, topic: str, exactly_once: str) -> None:
    topics = [f"{topic}-{letter}" for letter in "abc"]
    for one in topics:
        make_topic(cluster, one)
    sink = write_options(
        {"kafka.bootstrap.servers": broker.bootstrap, "exactlyOnce": exactly_once, "sinkId": f"{topic}-{exactly_once}"}
    )
    both = rows_of(b"1", b"2", topics=topics[:2])
    later = rows_of(b"3", topics=topics[2:])
    commit_all(sink, [write_rows(sink, iter([both, later]), Attempt(0, 0, "q", 0))])
    assert [values_in_topic(cluster, one) for one in topics] == [[b"1"], [b"2"], [b"3"]]


def test_rows_that_fail_are_told_and_their_transaction_is_aborted(
    cluster: Cluster, sink: WriteOptions, topic: str
) -> None:
    make_topic(cluster, topic)

    def rows() -> Iterator[pa.RecordBatch]:
        yield rows_of(b"first")
        raise ZeroDivisionError("the user's")

    with pytest.raises(ZeroDivisionError, match="the user's"):
        write_rows(sink, rows(), Attempt(0, 0, "q", 0))
    assert transaction_state(cluster, transaction_name(sink.sink_id, 0, 0))[0] in ("PrepareAbort", "CompleteAbort")
    assert values_in_topic(cluster, topic) == []
