"""A history held against the live log, gaps included: what the log has and the history has not is a difference."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tailrace.pipeline.access import Access
from tailrace.pipeline.failure import NoBrokerAvailable, PipelineFailed
from tailrace.pipeline.histories.audit import _is_there
from tailrace.pipeline.histories.findings import Finding
from tailrace.pipeline.histories.live_comparison import (
    CompactedPartition,
    Differences,
    log_bounds,
    range_in_log,
    range_in_log_from,
    refetch_range,
)
from tailrace.pipeline.histories.manifest import ArchivedRange, Gap
from tailrace.pipeline.histories.writing import archive_range
from tailrace.pipeline.kafka.cleanup_policy import compacted_topics
from tailrace.pipeline.kafka.cluster import Cluster, TopicPartition
from tailrace.pipeline.kafka.fetching import OffsetRange
from tailrace.testing import Broker
from tests.pipeline.damaging_proxy import damaging, flipping, without
from tests.pipeline.test_histories import two_days
from tests.pipeline.test_offset_gaps import archived, three_batches
from tests.pipeline.topics import make_topic, remove_topic, shorten, write


@pytest.fixture
def whole(cluster: Cluster, topic: str, tmp_path: Path) -> ArchivedRange:
    """Ten records of two days, in turn."""
    make_topic(cluster, topic)
    write(cluster, topic, two_days(10))
    return archive_range(cluster, OffsetRange(partition=TopicPartition(topic, 0), start=0, end=10), tmp_path)


def compared(
    bootstrap: str, one: ArchivedRange, folder: Path, shrinking: Sequence[str] = ()
) -> tuple[list[tuple[str, int, int]], dict[TopicPartition, CompactedPartition]]:
    """Findings, as file and offsets, and what was found of compacted partitions."""
    told = refetch_range(one.to_dict(), {"access": Access(bootstrap=bootstrap).to_dict(), "history": str(folder)})
    in_log = range_in_log_from(json.loads(json.dumps(told)))
    assert in_log is not None
    found = Differences()
    found.add(one, in_log, is_compacted=one.topic in shrinking)
    return [_where(finding) for finding in found.findings], found.compacted


def _where(found: Finding) -> tuple[str, int, int]:
    assert found.kind == "differs from the log"
    return found.file, found.first, found.last


def compaction(*offsets: int) -> tuple[Gap, ...]:
    return tuple(Gap(first=offset, last=offset, reason="compaction") for offset in offsets)


def test_the_same(broker: Broker, whole: ArchivedRange, tmp_path: Path) -> None:
    assert compared(broker.bootstrap, whole, tmp_path) == ([], {})
    partition = CompactedPartition(compared=10)
    assert compared(broker.bootstrap, whole, tmp_path, [whole.topic]) == ([], {whole.of: partition})


def test_a_day_that_is_called_a_gap(broker: Broker, whole: ArchivedRange, tmp_path: Path) -> None:
    one = replace(whole, files=whole.files[:1], count=5, gaps=compaction(1, 3, 5, 7, 9))
    assert one.is_whole
    assert compared(broker.bootstrap, one, tmp_path) == ([("", 1, 9)], {})
    lost = CompactedPartition(compared=5, unarchived=[(1, 1), (3, 3), (5, 5), (7, 7), (9, 9)])
    assert compared(broker.bootstrap, one, tmp_path, [one.topic]) == ([], {one.of: lost})


def test_a_range_that_is_called_a_gap(broker: Broker, whole: ArchivedRange, tmp_path: Path) -> None:
    one = replace(whole, files=(), count=0, gaps=compaction(*range(10)))
    assert _is_there(one, {one.of: 0}, {one.of: 10})
    assert compared(broker.bootstrap, one, tmp_path) == ([("", 0, 8), ("", 1, 9)], {})
    lost = CompactedPartition(unarchived=[(0, 9)])
    assert compared(broker.bootstrap, one, tmp_path, [one.topic]) == ([], {one.of: lost})


def test_records_of_a_day_that_are_called_gaps(
    broker: Broker, cluster: Cluster, whole: ArchivedRange, tmp_path: Path
) -> None:
    """The file is whole in itself: its last record was never in it."""
    write(cluster, whole.topic, two_days(2, 10))
    one = replace(whole, end=12, gaps=compaction(10, 11))
    first, second = (file.path for file in whole.files)
    assert compared(broker.bootstrap, one, tmp_path) == ([(first, 0, 10), (second, 1, 11)], {})
    lost = CompactedPartition(compared=10, unarchived=[(10, 11)])
    assert compared(broker.bootstrap, one, tmp_path, [one.topic]) == ([], {one.of: lost})


def test_records_that_are_not_the_same(broker: Broker, cluster: Cluster, topic: str, tmp_path: Path) -> None:
    """The topic was made anew, with other values, keys and headers at some offsets."""
    make_topic(cluster, topic, policy="compact")
    records = two_days(10)
    write(cluster, topic, records)
    one = archive_range(cluster, OffsetRange(partition=TopicPartition(topic, 0), start=0, end=10), tmp_path)
    remove_topic(cluster, topic)
    make_topic(cluster, topic, policy="compact")
    records[3] = records[3]._replace(value=b"another")
    records[4] = records[4]._replace(value=None)
    records[8] = records[8]._replace(headers=(("n", b"another"),))
    write(cluster, topic, records)
    findings, compacted = compared(broker.bootstrap, one, tmp_path, [topic])
    assert (findings, compacted) == ([("", 3, 8)], {one.of: CompactedPartition(compared=10)})


def test_a_batch_of_a_compacted_log_that_cannot_be_read(
    broker: Broker, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    three_batches(cluster, topic, "compact")
    one = archive_range(cluster, OffsetRange(partition=TopicPartition(topic, 0), start=0, end=30), tmp_path)
    with damaging(broker.bootstrap, flipping(b"value 105")) as bootstrap:
        findings, compacted = compared(bootstrap, one, tmp_path, [topic])
    assert findings == [(one.files[0].path, 10, 19)]
    assert compacted == {one.of: CompactedPartition(compared=30, is_unreadable=True)}


def test_a_log_that_retention_shortens_meanwhile_is_not_compared(
    cluster: Cluster, whole: ArchivedRange, tmp_path: Path
) -> None:
    shorten(cluster, whole.topic, 3)
    assert range_in_log(cluster, whole, tmp_path) is None


def test_a_partition_that_was_only_seen_has_nothing_to_compare(whole: ArchivedRange) -> None:
    one = replace(whole, end=0, files=(), count=0)
    assert not _is_there(one, {one.of: 0}, {one.of: 10})


@pytest.mark.parametrize("policy", ["compact", "delete"])
def test_a_log_that_has_less_than_it_had(
    broker: Broker, cluster: Cluster, topic: str, tmp_path: Path, policy: str
) -> None:
    three_batches(cluster, topic, policy)
    one = archive_range(cluster, OffsetRange(partition=TopicPartition(topic, 0), start=0, end=30), tmp_path)
    (path,) = (file.path for file in one.files)
    with damaging(broker.bootstrap, without(b"value 10")) as bootstrap, Cluster(bootstrap) as behind:
        found = compared(bootstrap, one, tmp_path, compacted_topics(behind, [topic]))
    if policy == "compact":
        assert found == ([], {one.of: CompactedPartition(compared=30, removed=10)})
    else:
        assert found == ([(path, 0, 29)], {})


def test_a_log_that_was_compacted_before_it_was_archived(
    broker: Broker, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    three_batches(cluster, topic, "compact")
    one = archived(broker, topic, tmp_path, 30)
    assert [gap.reason for gap in one.gaps] == ["compaction"]
    partition = CompactedPartition(compared=20)
    with damaging(broker.bootstrap, without(b"value 10")) as bootstrap:
        assert compared(bootstrap, one, tmp_path, [topic]) == ([], {one.of: partition})
    partition.unarchived = [(10, 19)]
    assert compared(broker.bootstrap, one, tmp_path, [topic]) == ([], {one.of: partition})


def test_a_topic_that_is_gone_is_not_a_broker_that_is_silent(cluster: Cluster) -> None:
    _, _, notes = log_bounds(cluster, ["never-made"])
    assert notes == ["topic never-made is not on the broker any more: its history was checked by itself"]
    with pytest.raises(NoBrokerAvailable, match=r"no broker at 127\.0\.0\.1:1"):
        log_bounds(Cluster("127.0.0.1:1", retry_timeout_s=0.2), ["never-made"])


def test_a_broker_that_does_not_say_is_not_taken_for_one_that_says_no(cluster: Cluster) -> None:
    """Whoever may not see a topic's settings would else take any hole for damage, or any damage for compaction."""
    assert compacted_topics(cluster, ["never-made"]) == []
    with pytest.raises(PipelineFailed, match="the broker says INVALID_TOPIC_EXCEPTION"):
        compacted_topics(cluster, ["no/name"])
