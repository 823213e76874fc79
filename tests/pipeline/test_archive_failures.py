"""When an archive cannot go on, it says what happened, and what can be done by who came through its door."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from tailrace.pipeline.access import Access
from tailrace.pipeline.failure import DataLost, RecordsDamaged
from tailrace.pipeline.histories.archive_task import ArchiveTask, run_archive_task
from tailrace.pipeline.histories.pending_offsets import pending_offsets
from tailrace.pipeline.histories.writing import archive_range
from tailrace.pipeline.kafka.cluster import Cluster, TopicPartition
from tailrace.pipeline.kafka.fetching import OffsetRange
from tailrace.pipeline.source.options import read_options
from tailrace.records.build import build_batch
from tailrace.testing import Broker
from tests.pipeline.test_damaged_batches import garbled
from tests.pipeline.topics import FIRST_TIME, make_topic, numbered, shorten, write, write_bytes


def ahead(broker: Broker, cluster: Cluster, topic: str, archived: int | None, **options: str) -> tuple[int, int]:
    asked = read_options({"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic, **options}, "batch")
    of = TopicPartition(topic, 0)
    found = pending_offsets(cluster, asked, {} if archived is None else {of: archived})
    return found.start[of], found.end[of]


def test_records_that_retention_has_removed(broker: Broker, cluster: Cluster, topic: str, tmp_path: Path) -> None:
    make_topic(cluster, topic)
    write(cluster, topic, numbered(10))
    write(cluster, topic, numbered(10, 10))
    shorten(cluster, topic, 10)
    assert ahead(broker, cluster, topic, 10) == ahead(broker, cluster, topic, None) == (10, 20)
    with pytest.raises(DataLost, match=r"from offset 5 on, and its log begins at 10\. .*archive to another folder$"):
        ahead(broker, cluster, topic, 5)
    common = ArchiveTask(access=Access(bootstrap=broker.bootstrap), history=str(tmp_path), quarantine="")
    with pytest.raises(DataLost, match=r"has no offset 5 any more\. .*If it has none, run it again$"):
        run_archive_task((topic, 0, 5, 20), asdict(common))


def test_a_log_that_is_shorter_than_its_history(broker: Broker, cluster: Cluster, topic: str) -> None:
    make_topic(cluster, topic)
    write(cluster, topic, numbered(10))
    assert ahead(broker, cluster, topic, 10) == (10, 10)
    said = r"from offset 11 on, and its log ends at 10: was it deleted and created again\? .*archive to another folder$"
    with pytest.raises(DataLost, match=said):
        ahead(broker, cluster, topic, 11)


def test_where_a_first_archive_begins(broker: Broker, cluster: Cluster, topic: str) -> None:
    make_topic(cluster, topic)
    write(cluster, topic, numbered(10))
    offsets = json.dumps({topic: {"0": 4}})
    assert ahead(broker, cluster, topic, None, startingOffsets=offsets) == (4, 10)
    assert ahead(broker, cluster, topic, 7, startingOffsets=offsets) == (7, 10)
    assert ahead(broker, cluster, topic, None, startingTimestamp=str(FIRST_TIME + 6000)) == (6, 10)
    with pytest.raises(DataLost, match=r"from offset 11 on, and its log ends at 10: .*Begin elsewhere$"):
        ahead(broker, cluster, topic, None, startingOffsets=json.dumps({topic: {"0": 11}}))


def test_records_that_are_damaged(cluster: Cluster, topic: str, tmp_path: Path) -> None:
    make_topic(cluster, topic)
    write_bytes(cluster, topic, garbled(bytes(build_batch(numbered(10)))))
    with pytest.raises(RecordsDamaged, match=r"offsets 0…9 of .* set these aside: --quarantine"):
        archive_range(cluster, OffsetRange(partition=TopicPartition(topic, 0), start=0, end=10), tmp_path)
