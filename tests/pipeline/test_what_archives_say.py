"""When an archive cannot go on, it says what happened, and what can be done by who came through its door."""

from dataclasses import asdict
from pathlib import Path

import pytest

from tailrace.pipeline.access import Access
from tailrace.pipeline.failure import DataLost, RecordsDamaged
from tailrace.pipeline.histories.archiving import Archiving, archive_told
from tailrace.pipeline.histories.outlook import Outlook, outlook
from tailrace.pipeline.histories.writing import archive_range
from tailrace.pipeline.kafka.cluster import Cluster, TopicPartition
from tailrace.pipeline.kafka.fetching import Range
from tailrace.pipeline.source.options import Subscription
from tailrace.records.build import build_batch
from tailrace.testing import Broker
from tests.pipeline.test_damaged_batches import garbled
from tests.pipeline.topics import make_topic, numbered, shorten, write, write_bytes


def ahead(cluster: Cluster, topic: str, archived: int) -> Outlook:
    what = Subscription(kind="subscribe", value=topic)
    return outlook(cluster, what, {TopicPartition(topic, 0): archived}, committed=True, if_lost="Do this.")


def test_records_that_retention_has_removed(broker: Broker, cluster: Cluster, topic: str, tmp_path: Path) -> None:
    make_topic(cluster, topic)
    write(cluster, topic, numbered(10))
    write(cluster, topic, numbered(10, 10))
    shorten(cluster, topic, 10)
    assert ahead(cluster, topic, 10).start == {TopicPartition(topic, 0): 10}
    with pytest.raises(DataLost, match=r"is archived up to offset 5, and its log begins at 10\. Do this\.$"):
        ahead(cluster, topic, 5)
    common = Archiving(access=Access(bootstrap=broker.bootstrap), history=str(tmp_path), committed=True, quarantine="")
    with pytest.raises(DataLost, match=r"has no offset 5 any more\. .*archive to another folder$"):
        archive_told((topic, 0, 5, 20), asdict(common))


def test_a_log_that_is_shorter_than_its_history(cluster: Cluster, topic: str) -> None:
    make_topic(cluster, topic)
    write(cluster, topic, numbered(10))
    assert ahead(cluster, topic, 10).end == {TopicPartition(topic, 0): 10}
    with pytest.raises(DataLost, match=r"up to offset 11, and its log ends at 10: was it made anew\? Do this\.$"):
        ahead(cluster, topic, 11)


def test_records_that_are_damaged(cluster: Cluster, topic: str, tmp_path: Path) -> None:
    make_topic(cluster, topic)
    write_bytes(cluster, topic, garbled(bytes(build_batch(numbered(10)))))
    with pytest.raises(RecordsDamaged, match=r"offsets 0…9 of .* set these aside: --quarantine"):
        archive_range(cluster, Range(partition=TopicPartition(topic, 0), start=0, end=10), tmp_path)
