"""When an archive cannot go on, it says what happened, and what can be done by who came through its door."""

from pathlib import Path

import pytest
from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable

from tailrace.pipeline.failure import DataLost, RecordsDamaged
from tailrace.pipeline.histories.archiving import ArchivingReader
from tailrace.pipeline.histories.writing import archive_range
from tailrace.pipeline.kafka.cluster import Cluster, TopicPartition
from tailrace.pipeline.kafka.fetching import Range
from tailrace.pipeline.source.options import read_options
from tailrace.pipeline.source.stream import StreamReader
from tailrace.records.build import build_batch
from tailrace.testing import Broker
from tests.pipeline.test_damaged_batches import garbled
from tests.pipeline.topics import make_topic, numbered, remove_topic, shorten, write, write_bytes


def archiving(broker: Broker, topics: str, folder: Path) -> ArchivingReader:
    given = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topics, "startingOffsets": "earliest"}
    return ArchivingReader(read_options(given, "stream"), str(folder))


def two_topics(cluster: Cluster, topic: str) -> tuple[str, str]:
    for name in (topic, f"{topic}-2"):
        make_topic(cluster, name)
        write(cluster, name, numbered(10))
    return topic, f"{topic}-2"


def test_a_topic_that_is_left_out(broker: Broker, cluster: Cluster, topic: str, tmp_path: Path) -> None:
    kept, left_out = two_topics(cluster, topic)
    before = {kept: {"0": 5}, left_out: {"0": 5}}
    said = rf"{left_out}-0 was read before, and is not among what is asked for now \(subscribe {kept}\)\. "
    with pytest.raises(DataLost, match=rf"{said}To go on without it, remove {tmp_path}/_tailrace/checkpoint"):
        archiving(broker, kept, tmp_path).latestOffset(before, ReadAllAvailable())
    given = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": kept, "startingOffsets": "earliest"}
    with pytest.raises(DataLost, match=rf'{said}To go on without it, set option\("failOnDataLoss", "false"\)'):
        StreamReader(read_options(given, "stream"), None).latestOffset(before, ReadAllAvailable())


def test_a_topic_that_was_deleted(broker: Broker, cluster: Cluster, topic: str, tmp_path: Path) -> None:
    kept, gone = two_topics(cluster, topic)
    remove_topic(cluster, gone)
    with pytest.raises(DataLost, match=rf"{gone}-0 is not there any more: its topic was deleted\. .*checkpoint"):
        archiving(broker, kept, tmp_path).latestOffset({kept: {"0": 5}, gone: {"0": 5}}, ReadAllAvailable())


def test_records_that_retention_has_removed(broker: Broker, cluster: Cluster, topic: str, tmp_path: Path) -> None:
    make_topic(cluster, topic)
    write(cluster, topic, numbered(10))
    write(cluster, topic, numbered(10, 10))
    shorten(cluster, topic, 10)
    reader = archiving(broker, topic, tmp_path)
    with pytest.raises(DataLost, match=r"from offset 5, and begins at 10\. .*archive to another folder$"):
        reader.partitions({topic: {"0": 5}}, {topic: {"0": 20}})
    wanted = Range(partition=TopicPartition(topic, 0), start=5, end=20)
    with pytest.raises(DataLost, match=r"has no offset 5 any more\. .*archive to another folder$"):
        list(reader.read(InputPartition(wanted)))


def test_records_that_are_damaged(cluster: Cluster, topic: str, tmp_path: Path) -> None:
    make_topic(cluster, topic)
    write_bytes(cluster, topic, garbled(bytes(build_batch(numbered(10)))))
    with pytest.raises(RecordsDamaged, match=r"offsets 0…9 of .* set these aside: --quarantine"):
        archive_range(cluster, Range(partition=TopicPartition(topic, 0), start=0, end=10), tmp_path)
