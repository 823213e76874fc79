"""Archive and audit: exactly once over restarts, complete or named, and no false alarm."""

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tailrace.pipeline import archive, audit, history
from tailrace.pipeline.failure import DataLost, NotOurHistory, PipelineFailed
from tailrace.pipeline.histories.committing import check_ranges, commit_batch, open_or_create
from tailrace.pipeline.histories.delta_log import Snapshot, read_log
from tailrace.pipeline.histories.locking import exclusive_lock
from tailrace.pipeline.histories.manifest import ArchivedRange, Gap
from tailrace.pipeline.kafka.cluster import Cluster, TopicPartition
from tailrace.pipeline.kafka.offsets import committed_offsets
from tailrace.pipeline.kafka.transactions import end_transaction, init_transactions
from tailrace.records.record import NewRecord
from tailrace.testing import Broker
from tests.pipeline.test_sink import write_one
from tests.pipeline.topics import FIRST_TIME, make_topic, numbered, remove_topic, shorten, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

spark_only = pytest.mark.spark
DAY_MS = 24 * 60 * 60 * 1000


def two_days(count: int, start: int = 0) -> list[NewRecord]:
    """Records whose timestamps go to and fro between two days."""
    return [
        one._replace(timestamp=FIRST_TIME + (number % 2) * DAY_MS + number, headers=(("n", b"%d" % number),))
        for number, one in enumerate(numbered(count, start), start)
    ]


@pytest.fixture(scope="session")
def whole(spark: "SparkSession", broker: Broker, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A healthy history of two partitions in three commits; tests harm copies of it."""
    folder = tmp_path_factory.mktemp("whole") / "history"
    topic = "orders-to-harm"
    make_topic(cluster, topic, 2)
    for number in range(3):
        for partition in range(2):
            write(cluster, topic, two_days(20, 20 * number), partition=partition)
        archive(spark, broker.bootstrap, folder, topics=[topic], available_now=True)
    return folder


@spark_only
def test_each_record_is_there_once_over_restarts(
    spark: "SparkSession", broker: Broker, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    make_topic(cluster, topic, 2)
    write(cluster, topic, two_days(30), compression="zstd")
    first = archive(spark, broker.bootstrap, tmp_path / "h", topics=[topic], available_now=True)
    assert (first.records, first.batches, first.files) == (30, 1, 2)
    write(cluster, topic, two_days(30, 30))
    write(cluster, topic, numbered(5), partition=1)
    second = archive(spark, broker.bootstrap, tmp_path / "h", pattern=f"{topic}.*", available_now=True)
    assert second.records == 35
    assert second.ends == {TopicPartition(topic, 0): 60, TopicPartition(topic, 1): 5}
    rows = history(spark, tmp_path / "h").orderBy("partition", "offset").collect()
    assert [(row.partition, row.offset) for row in rows] == [(0, n) for n in range(60)] + [(1, n) for n in range(5)]
    assert [bytes(row.value) for row in rows[:60]] == [one.value for one in two_days(60)]
    assert {str(row.date) for row in rows} == {"2023-11-14", "2023-11-15"}


@spark_only
def test_it_goes_on_until_it_is_interrupted(
    spark: "SparkSession", broker: Broker, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    make_topic(cluster, topic)
    write(cluster, topic, numbered(10))
    batches: list[int] = []

    def write_more(ranges: Sequence[ArchivedRange]) -> None:
        batches.append(sum(one.count for one in ranges))
        if len(batches) == 3:
            raise KeyboardInterrupt
        write(cluster, topic, numbered(5, 10))

    done = archive(spark, broker.bootstrap, tmp_path / "h", topics=[topic], trigger_s=0.01, on_batch=write_more)
    assert (batches, done.batches, done.records) == ([10, 5, 5], 3, 20)
    assert audit(spark, tmp_path / "h", bootstrap=broker.bootstrap).is_complete


@spark_only
def test_in_commits_of_a_given_size_and_with_a_group_to_watch(
    spark: "SparkSession", broker: Broker, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    make_topic(cluster, topic, 2)
    for partition in range(2):
        write(cluster, topic, numbered(10), partition=partition)
    options = {"maxOffsetsPerTrigger": "8", "kafka.group.id": f"{topic}-archive"}
    done = archive(spark, broker.bootstrap, tmp_path / "h", topics=[topic], available_now=True, options=options)
    assert (done.batches, done.records) == (3, 20)
    both = [TopicPartition(topic, 0), TopicPartition(topic, 1)]
    assert committed_offsets(cluster, f"{topic}-archive", both) == dict.fromkeys(both, 10) == done.ends


@spark_only
def test_it_is_stopped_by_another_thread(
    spark: "SparkSession", broker: Broker, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    make_topic(cluster, topic)
    write(cluster, topic, numbered(10))
    stop = threading.Event()
    to = tmp_path / "h"
    done = archive(
        spark, broker.bootstrap, to, topics=[topic], trigger_s=3600.0, on_batch=lambda _: stop.set(), stop=stop
    )
    assert done.records == 10


@spark_only
def test_what_was_empty_and_is_gone_is_missed(
    spark: "SparkSession", broker: Broker, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    make_topic(cluster, topic, 2)
    write(cluster, topic, numbered(10))
    first = archive(spark, broker.bootstrap, tmp_path / "h", topics=[topic], available_now=True)
    assert (first.batches, first.ends) == (1, {TopicPartition(topic, 0): 10, TopicPartition(topic, 1): 0})
    assert archive(spark, broker.bootstrap, tmp_path / "h", topics=[topic], available_now=True).batches == 0
    assert audit(spark, tmp_path / "h", bootstrap=broker.bootstrap).is_complete
    for number in (0, 10):
        write(cluster, topic, numbered(10, number), partition=1)
    shorten(cluster, topic, 10, partition=1)
    with pytest.raises(DataLost, match=f"{topic}-1 is to be archived from offset 0 on, and its log begins at 10"):
        archive(spark, broker.bootstrap, tmp_path / "h", topics=[topic], available_now=True)


@spark_only
def test_options_that_mean_nothing_here(spark: "SparkSession", broker: Broker, tmp_path: Path) -> None:
    for name in ("failOnDataLoss", "endingOffsets", "queryId"):
        with pytest.raises(PipelineFailed, match=f"there is no option {name}"):
            archive(spark, broker.bootstrap, tmp_path / "h", topics=["t"], options={name: "x"})
    options = {"kafka.isolation.level": "read_uncommitted"}
    with pytest.raises(PipelineFailed, match="an archive holds committed records, and no others"):
        archive(spark, broker.bootstrap, tmp_path / "h", topics=["t"], options=options)


@spark_only
def test_other_topics_than_before(
    spark: "SparkSession", broker: Broker, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    """One that is left out, here since it was deleted, keeps its history, and is no reason to stop."""
    names = [topic, f"{topic}-2"]
    for name in names:
        make_topic(cluster, name)
        write(cluster, name, numbered(10))
    archive(spark, broker.bootstrap, tmp_path / "h", topics=names, available_now=True)
    write(cluster, topic, numbered(5, 10))
    remove_topic(cluster, names[1])
    assert archive(spark, broker.bootstrap, tmp_path / "h", topics=[topic], available_now=True).records == 5
    assert history(spark, tmp_path / "h").count() == 25
    assert audit(spark, tmp_path / "h").is_complete


@spark_only
def test_reading_a_history_scans_only_what_is_needed(spark: "SparkSession", whole: Path) -> None:
    frame = history(spark, whole).where("topic = 'orders-to-harm' and offset > 5").select("offset")
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert "ReadSchema: struct<offset:bigint>" in plan
    assert "PushedFilters: [IsNotNull(offset), GreaterThan(offset,5)]" in plan
    assert "PartitionFilters: [isnotnull(topic" in plan


@spark_only
def test_a_healthy_history_is_complete(spark: "SparkSession", broker: Broker, whole: Path) -> None:
    found = audit(spark, whole, bootstrap=broker.bootstrap)
    assert (found.findings, found.notes, found.records) == ((), (), 120)
    assert found.compared == 6


@spark_only
def test_a_history_that_retention_overtook_is_no_false_alarm(
    spark: "SparkSession", broker: Broker, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    make_topic(cluster, topic)
    for number in range(3):
        write(cluster, topic, numbered(10, 10 * number))
    shorten(cluster, topic, 10)
    archive(spark, broker.bootstrap, tmp_path / "h", topics=[topic], available_now=True)
    shorten(cluster, topic, 20)
    found = audit(spark, tmp_path / "h", bootstrap=broker.bootstrap)
    assert found.findings == ()
    assert found.partitions[0].start == 10


@spark_only
def test_aborted_transactions_are_explained_and_no_alarm(
    spark: "SparkSession", broker: Broker, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    make_topic(cluster, topic)
    for number in range(6):
        transaction = init_transactions(cluster, f"{topic}-{number % 2}", 60_000)
        write_one(cluster, transaction, topic, b"value %d" % number)
        end_transaction(cluster, transaction, commit=number % 3 != 0)
        write(cluster, topic, numbered(2, 100 + 2 * number))
    archive(spark, broker.bootstrap, tmp_path / "h", topics=[topic], available_now=True)
    found = audit(spark, tmp_path / "h", bootstrap=broker.bootstrap)
    assert found.findings == ()
    assert found.partitions[0].explained == {"aborted": 2, "control": 6}
    values = {bytes(row.value) for row in history(spark, tmp_path / "h").collect()}
    assert {value for value in values if len(value) == 7} == {b"value %d" % number for number in (1, 2, 4, 5)}


@spark_only
@pytest.mark.usefixtures("whole")
def test_a_log_that_was_made_anew_is_seen(
    spark: "SparkSession", broker: Broker, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    make_topic(cluster, topic)
    write(cluster, topic, numbered(10))
    archive(spark, broker.bootstrap, tmp_path / "h", topics=[topic], available_now=True)
    commit = tmp_path / "h" / "_delta_log" / "00000000000000000001.json"
    text = commit.read_text()
    for name in (topic, f"topic={topic}"):
        text = text.replace(name, name.replace(topic, "orders-to-harm"))
    commit.write_text(text)
    (tmp_path / "h" / f"topic={topic}").rename(tmp_path / "h" / "topic=orders-to-harm")
    found = audit(spark, tmp_path / "h", bootstrap=broker.bootstrap)
    assert {finding.kind for finding in found.findings} == {"differs from the log"}
    assert [(finding.first, finding.last) for finding in found.findings] == [(0, 9), (1, 9)]  # of two days


@spark_only
def test_two_archives_at_one_place(
    spark: "SparkSession", broker: Broker, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    make_topic(cluster, topic)
    write(cluster, topic, numbered(10))
    open_or_create(tmp_path / "h")
    with (
        exclusive_lock(tmp_path / "h", "archive"),
        pytest.raises(PipelineFailed, match="another archive is writing to"),
    ):
        archive(spark, broker.bootstrap, tmp_path / "h", topics=[topic], available_now=True)
    assert read_log(tmp_path / "h").live == {}
    assert list((tmp_path / "h").rglob("*.parquet")) == []


@spark_only
def test_a_topic_that_is_not_there_shows_before_anything_is_written(
    spark: "SparkSession", broker: Broker, tmp_path: Path
) -> None:
    with pytest.raises(PipelineFailed, match="no topic never-made"):
        archive(spark, broker.bootstrap, tmp_path / "h", topics=["never-made"], available_now=True)
    assert not (tmp_path / "h").exists()


def a_range(start: int, end: int, **changed: object) -> ArchivedRange:
    gap = Gap(first=start, last=end - 1, reason="control")
    told = {"topic": "t", "partition": 0, "start": start, "end": end, "count": 0, "gaps": (gap,), "files": ()}
    return ArchivedRange(**{**told, **changed})  # type: ignore[arg-type]


def test_a_log_is_read_on_from_what_is_known(tmp_path: Path) -> None:
    open_or_create(tmp_path / "h")
    known = Snapshot()
    for batch in range(3):
        commit_batch(tmp_path / "h", [a_range(batch, batch + 1)], known)
    assert known == read_log(tmp_path / "h")
    assert known.ends() == {TopicPartition("t", 0): 3}


def test_what_does_not_follow_is_not_committed(tmp_path: Path) -> None:
    open_or_create(tmp_path / "h")
    commit_batch(tmp_path / "h", [a_range(0, 5)])
    with pytest.raises(PipelineFailed, match="archived up to 5, but this batch begins at 7"):
        commit_batch(tmp_path / "h", [a_range(7, 9)])
    with pytest.raises(PipelineFailed, match="not all offsets are accounted for"):
        commit_batch(tmp_path / "h", [a_range(5, 9, count=1)])
    check_ranges(read_log(tmp_path / "h"), [a_range(6, 9), a_range(5, 6)])


def test_a_folder_that_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "a.txt").write_text("dear")
    with pytest.raises(NotOurHistory, match="holds no history of Tailrace"):
        open_or_create(tmp_path / "letters")
    table = tmp_path / "table" / "_delta_log"
    table.mkdir(parents=True)
    (table / f"{0:020d}.json").write_text(json.dumps({"metaData": {"id": "x"}}))
    with pytest.raises(NotOurHistory, match="no history of Tailrace"):
        open_or_create(tmp_path / "table")
