"""Archive, audit and replay of topics that are compacted: before, while and after; complete, and no false alarm."""

import itertools
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from tailrace.pipeline import archive, audit, history, replay
from tailrace.pipeline.histories.findings import Audit
from tailrace.pipeline.histories.last_values import LogFrames, Search
from tailrace.pipeline.histories.live_comparison import CompactedPartition
from tailrace.pipeline.histories.spark_columns import SPARK_DDL
from tailrace.pipeline.kafka.cluster import Cluster, TopicPartition
from tailrace.pipeline.kafka.offsets import start_offsets
from tests.pipeline.compacted_topics import (
    COMPACTED_TIMEOUT_S,
    SMALL_SEGMENTS,
    Compacting,
    compacting_broker,
    tombstones,
    values,
    write_in_transaction,
)
from tests.pipeline.damaging_proxy import damaging, without
from tests.pipeline.test_sink import records
from tests.pipeline.topics import write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
UNCOMPACTED_MAX = 400  # offsets: a producer waits for compaction to keep up
KEYS = [f"key {number}" for number in range(12)]


@pytest.fixture(scope="module")
def compacting() -> Iterator[Compacting]:
    with compacting_broker() as found:
        yield found


def archived(spark: "SparkSession", compacting: Compacting, topic: str, folder: Path) -> int:
    return archive(spark, compacting.broker.bootstrap, folder, topics=[topic], available_now=True).records


def audited(spark: "SparkSession", compacting: Compacting, folder: Path) -> Audit:
    found = audit(spark, folder, bootstrap=compacting.broker.bootstrap)
    assert found.findings == ()
    return found


def last_values(rows: Sequence[Any]) -> dict[bytes, bytes | None]:
    return {bytes(row.key): row.value if row.value is None else bytes(row.value) for row in rows}


def in_history(spark: "SparkSession", folder: Path) -> dict[bytes, bytes | None]:
    """The last value of each key in the history."""
    return last_values(history(spark, folder).orderBy("offset").collect())


def in_log(compacting: Compacting, topic: str) -> dict[bytes, bytes | None]:
    of = TopicPartition(topic, 0)
    return last_values(records(compacting.cluster, topic, start=start_offsets(compacting.cluster, [of])[of]))


def test_archived_before_it_is_compacted(
    spark: "SparkSession", compacting: Compacting, topic: str, tmp_path: Path
) -> None:
    compacting.make(topic)
    for generation in range(5):
        write(compacting.cluster, topic, values(KEYS, generation))
    assert archived(spark, compacting, topic, tmp_path / "h") == 60
    before = in_log(compacting, topic)
    compacting.compact(topic)
    found = audited(spark, compacting, tmp_path / "h")
    (partition,) = found.partitions
    assert (partition.records, partition.explained, partition.compacted) == (60, {}, 48)
    assert f"{topic}-0: the log has 12 of 60 records since it was compacted" in found.notes
    assert in_history(spark, tmp_path / "h") == before


def test_archived_after_it_was_compacted_and_replayed(
    spark: "SparkSession", compacting: Compacting, topic: str, tmp_path: Path
) -> None:
    compacting.make(topic)
    for generation in range(5):
        write(compacting.cluster, topic, values(KEYS, generation))
    write(compacting.cluster, topic, tombstones(KEYS[:2]))
    upto = compacting.compact(topic)
    bootstrap, small = compacting.broker.bootstrap, {"maxRecordsPerPartition": "5"}  # ranges without a record, too
    done = archive(spark, bootstrap, tmp_path / "h", topics=[topic], available_now=True, options=small)
    assert done.records == len(KEYS) + 2
    (partition,) = audited(spark, compacting, tmp_path / "h").partitions
    assert (partition.end, partition.explained, partition.compacted) == (upto + 2, {"compaction": 50}, 0)
    assert in_history(spark, tmp_path / "h") == in_log(compacting, topic)
    again = f"{topic}-again"
    compacting.make(again)
    assert replay(spark, tmp_path / "h", bootstrap, topic=topic, into=again, keep_timestamp=True) == len(KEYS) + 2
    copied = [record._replace(offset=0) for record in records(compacting.cluster, again)]
    assert copied == [record._replace(offset=0) for record in records(compacting.cluster, topic)]


def test_a_stream_over_offsets_without_records(
    spark: "SparkSession", compacting: Compacting, topic: str, tmp_path: Path
) -> None:
    compacting.make(topic)
    for generation in range(5):
        write(compacting.cluster, topic, values(KEYS, generation))
    compacting.compact(topic)
    reader = spark.readStream.format("tailrace").option("kafka.bootstrap.servers", compacting.broker.bootstrap)
    reader = reader.options(subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger=25)
    frame = reader.schema("offset bigint").load()
    writer = frame.writeStream.format("parquet").option("path", str(tmp_path / "out"))
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination(60)
    assert [batch["numInputRows"] for batch in query.recentProgress if batch["numInputRows"]]
    rows = spark.read.parquet(str(tmp_path / "out")).orderBy("offset").collect()
    assert [row.offset for row in rows] == [record.offset for record in records(compacting.cluster, topic)]


def test_tombstones_and_aborted_records(
    spark: "SparkSession", compacting: Compacting, topic: str, tmp_path: Path
) -> None:
    """A part is archived before they are removed, and a part after."""
    compacting.make(topic)
    cluster = compacting.cluster
    write(cluster, topic, values(KEYS, 0))
    write_in_transaction(cluster, topic, topic, values(KEYS, 1), commit=False)
    write_in_transaction(cluster, topic, topic, values(KEYS[:6], 2), commit=True)
    write(cluster, topic, tombstones(KEYS[6:8]))
    assert archived(spark, compacting, topic, tmp_path / "h") == 12 + 6 + 2
    write_in_transaction(cluster, topic, topic, values(KEYS, 3), commit=False)
    write(cluster, topic, tombstones(KEYS[8:10]))  # removed before they are archived
    compacting.remove_tombstones(topic)
    write_in_transaction(cluster, topic, topic, values(KEYS[:2], 4), commit=True)
    archived(spark, compacting, topic, tmp_path / "h")
    found = audited(spark, compacting, tmp_path / "h")
    (partition,) = found.partitions
    assert partition.compacted >= 12 + 6 + 2 - 6 - 2  # all but the last values of that time
    assert partition.explained["aborted"] >= 12
    assert [note for note in found.notes if "2 keys" in note] == [
        f"{topic}-0: the log has no value of 2 keys any more, such as that at offset 8: they may have been deleted, "
        "and the tombstones removed before they were archived"
    ]
    in_both = in_log(compacting, topic)
    only_archived = {
        key: value for key, value in in_history(spark, tmp_path / "h").items() if value != in_both.get(key)
    }
    assert only_archived == {b"key 8": b"key 8 0", b"key 9": b"key 9 0"}


def test_retention_beside_compaction_and_a_policy_that_changes(
    spark: "SparkSession", compacting: Compacting, topic: str, tmp_path: Path
) -> None:
    compacting.make(topic, policy="compact,delete", settings={**SMALL_SEGMENTS, "retention.bytes": "40000"})
    partition = TopicPartition(topic, 0)
    for generation in range(3):
        write(compacting.cluster, topic, values(KEYS, generation))
    archived(spark, compacting, topic, tmp_path / "h")
    compacting.compact(topic)
    compacting.change_policy(topic, "delete")
    archived(spark, compacting, topic, tmp_path / "h")
    assert audited(spark, compacting, tmp_path / "h").compared == 2
    archived(spark, compacting, topic, tmp_path / "late")
    (late,) = audited(spark, compacting, tmp_path / "late").partitions
    assert late.explained == {"compaction": 24}
    compacting.change_policy(topic, "compact,delete")
    deadline = time.monotonic() + COMPACTED_TIMEOUT_S
    while not start_offsets(compacting.cluster, [partition])[partition]:
        assert time.monotonic() < deadline
        compacting.compact(topic)
    archived(spark, compacting, topic, tmp_path / "h")
    assert audited(spark, compacting, tmp_path / "h").compared < 3
    assert in_history(spark, tmp_path / "h").items() >= in_log(compacting, topic).items()


def test_compaction_under_a_producer_beside_an_archive(
    spark: "SparkSession", compacting: Compacting, topic: str, tmp_path: Path
) -> None:
    written = compact_beside_an_archive(spark, compacting, topic, tmp_path / "h", rounds=2)
    (partition,) = audited(spark, compacting, tmp_path / "h").partitions
    assert partition.explained["compaction"] > 0
    assert partition.compacted > 0
    assert in_history(spark, tmp_path / "h") == written == in_log(compacting, topic)


@pytest.mark.long
def test_compaction_under_a_producer_beside_an_archive_for_long(
    spark: "SparkSession", compacting: Compacting, topic: str, tmp_path: Path
) -> None:
    written = compact_beside_an_archive(spark, compacting, topic, tmp_path / "h", rounds=20)
    audited(spark, compacting, tmp_path / "h")
    assert in_history(spark, tmp_path / "h") == written == in_log(compacting, topic)


def compact_beside_an_archive(
    spark: "SparkSession", compacting: Compacting, topic: str, folder: Path, rounds: int
) -> dict[bytes, bytes]:
    """Archive and audit a topic that is written and compacted meanwhile; the last values that were written."""
    compacting.make(topic, settings={**SMALL_SEGMENTS, "segment.bytes": "1024"})
    stop, written = threading.Event(), dict[bytes, bytes]()

    def produce() -> None:
        random = Random(1)
        with Cluster(compacting.broker.bootstrap) as cluster:
            for generation in itertools.count():
                if stop.is_set():
                    return
                some = values(random.sample(KEYS, 4), generation)
                offset = write(cluster, topic, some)
                compacting.log.wait_for(topic, offset - UNCOMPACTED_MAX)
                written.update((one.key or b"", one.value or b"") for one in some)

    producer = threading.Thread(target=produce)
    producer.start()
    try:
        for _ in range(rounds):
            archived(spark, compacting, topic, folder)
            audited(spark, compacting, folder)
    finally:
        stop.set()
        producer.join()
    archived(spark, compacting, topic, folder)
    return written


def test_a_last_value_that_the_history_lost_is_found(
    spark: "SparkSession", compacting: Compacting, topic: str, tmp_path: Path
) -> None:
    """The archive reads from a broker that does not serve one batch: the last value of a key."""
    compacting.make(topic)
    for generation in range(3):
        write(compacting.cluster, topic, values(KEYS, generation))
    for key in KEYS[3:5]:
        write(compacting.cluster, topic, values([key], 4))
    compacting.compact(topic)
    with damaging(compacting.broker.bootstrap, without(b"key 3 4")) as bootstrap:
        archive(spark, bootstrap, tmp_path / "h", topics=[topic], available_now=True)
    found = audit(spark, tmp_path / "h", bootstrap=compacting.broker.bootstrap)
    assert [(one.kind, one.first, one.last) for one in found.findings] == [("differs from the log", 36, 36)]
    assert "the log has 1 records there that the history lacks" in str(found.findings[0])
    assert audit(spark, tmp_path / "h").is_complete  # nothing but the log knows of it


def test_a_last_value_that_the_log_lost_is_found(
    spark: "SparkSession", compacting: Compacting, topic: str, tmp_path: Path
) -> None:
    compacting.make(topic)
    for generation in range(3):
        write(compacting.cluster, topic, values(KEYS, generation))
    write(compacting.cluster, topic, values(KEYS[3:5], 4))
    archived(spark, compacting, topic, tmp_path / "h")
    with damaging(compacting.broker.bootstrap, without(b"key 3 4")) as bootstrap:
        found = audit(spark, tmp_path / "h", bootstrap=bootstrap)
    assert [(one.kind, one.first, one.last) for one in found.findings] == [("differs from the log", 36, 37)]
    assert "the log has lost the last values of 2 keys there" in str(found.findings[0])


def test_values_that_are_superseded_while_the_log_is_read(
    spark: "SparkSession", compacting: Compacting, topic: str, tmp_path: Path
) -> None:
    """The read of the log ends where it ended when it was planned: the newer values are behind that."""
    compacting.make(topic)
    write(compacting.cluster, topic, values(KEYS, 0))
    archived(spark, compacting, topic, tmp_path / "h")
    search = searching(spark, compacting, topic, tmp_path, CompactedPartition(removed=1), is_replicated=False)
    write(compacting.cluster, topic, values(KEYS, 1))
    compacting.compact(topic)
    assert search.run(history(spark, tmp_path / "h"), {TopicPartition(topic, 0): -1}) == ([], [])


def searching(
    spark: "SparkSession",
    compacting: Compacting,
    topic: str,
    aside: Path,
    found: CompactedPartition,
    *,
    is_replicated: bool,
) -> Search:
    partition = TopicPartition(topic, 0)
    log = LogFrames(spark, {"kafka.bootstrap.servers": compacting.broker.bootstrap}, str(aside))
    return Search(spark, compacting.cluster, log, {partition: found}, {partition: is_replicated})


def test_what_another_replica_has_not_compacted_yet(
    spark: "SparkSession", compacting: Compacting, topic: str, tmp_path: Path
) -> None:
    """The history lacks superseded records, and one that is the last of its key; both replicas have them."""
    compacting.make(topic)
    write(compacting.cluster, topic, [*values(KEYS, 0), *values(KEYS[1:], 1)])
    found = CompactedPartition(compared=11, unarchived=[(0, 11)])
    search = searching(spark, compacting, topic, tmp_path, found, is_replicated=True)
    nothing = spark.createDataFrame([], SPARK_DDL)
    findings, notes = search.run(nothing, {TopicPartition(topic, 0): -1})
    assert [(finding.first, finding.last, finding.what) for finding in findings] == [
        (0, 0, "the log has the last values of 1 keys there, and the history lacks them")
    ]
    (note,) = notes
    assert "the log has 11 records that were superseded" in note
