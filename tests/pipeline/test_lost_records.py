"""Records that are not there any more, or never were: found when a read is planned, or while a task reads. No Spark."""

from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql.datasource import Filter, GreaterThan, GreaterThanOrEqual, LessThan
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import LongType, StructType

from tailrace.pipeline.access import Access
from tailrace.pipeline.failure import DataLost
from tailrace.pipeline.kafka.cluster import Cluster, TopicPartition
from tailrace.pipeline.kafka.fetching import OffsetRange
from tailrace.pipeline.source.batch import FilteredBatchReader
from tailrace.pipeline.source.options import read_options
from tailrace.pipeline.source.stream import StreamReader
from tailrace.pipeline.source.task import ReadTask
from tailrace.records.record import NewRecord
from tailrace.testing import Broker
from tests.pipeline.topics import make_topic, numbered, remove_topic, shorten, write


def stream(broker: Broker, topic: str, **options: str) -> StreamReader:
    given = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
    return StreamReader(read_options({**given, **options}, "stream"), StructType())


def planned(reader: Any) -> list[tuple[int, int]]:
    return [(one.value.start, one.value.end) for one in reader]


def test_a_topic_made_anew_is_a_failure(broker: Broker, cluster: Cluster, topic: str) -> None:
    make_topic(cluster, topic)
    write(cluster, topic, numbered(3))
    was = {topic: {"0": 1000}}
    for available_now in (False, True):
        reader = stream(broker, topic)
        if available_now:
            reader.prepareForTriggerAvailableNow()
        with pytest.raises(DataLost, match="was read up to offset 1000, but its log ends at 3: was it deleted"):
            reader.latestOffset(was, ReadAllAvailable())
        with pytest.raises(DataLost, match="its log ends at 3"):
            reader.partitions(was, {topic: {"0": 3}})


@pytest.mark.filterwarnings("ignore:.*was it deleted and created again")
def test_a_topic_made_anew_is_read_from_its_beginning(broker: Broker, cluster: Cluster, topic: str) -> None:
    make_topic(cluster, topic)
    write(cluster, topic, numbered(3))
    reader = stream(broker, topic, failOnDataLoss="false")
    was = {topic: {"0": 1000}}
    with pytest.warns(UserWarning, match="It is read from its beginning"):
        end = reader.latestOffset(was, ReadMaxRows(2))
    assert end == {topic: {"0": 2}}
    assert planned(reader.partitions(was, end)) == [(0, 2)]
    assert planned(reader.partitions(end, reader.latestOffset(end, ReadAllAvailable()))) == [(2, 3)]


def test_a_topic_that_is_left_out_or_was_deleted(broker: Broker, cluster: Cluster, topic: str) -> None:
    other = f"{topic}-2"
    for name in (topic, other):
        make_topic(cluster, name)
        write(cluster, name, numbered(10))
    was = {topic: {"0": 5}, other: {"0": 5}}
    advice = r'To go on without it, set option\("failOnDataLoss", "false"\)'
    said = rf"{other}-0 was read before, and is not among what is asked for now \(subscribe {topic}\)\. {advice}"
    with pytest.raises(DataLost, match=said):
        stream(broker, topic).latestOffset(was, ReadAllAvailable())
    remove_topic(cluster, other)
    with pytest.raises(DataLost, match=rf"{other}-0 is not there any more: its topic was deleted\. {advice}"):
        stream(broker, topic).latestOffset(was, ReadAllAvailable())


def filtered(broker: Broker, topic: str, *filters: Filter) -> list[tuple[int, int]]:
    """What a batch read is planned to read under these filters."""
    options = read_options({"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic}, "batch")
    reader = FilteredBatchReader(options, StructType().add("offset", LongType()))
    reader.pushFilters(list(filters))
    return planned(reader.partitions())


def test_a_filter_beyond_the_end_asks_for_nothing(broker: Broker, cluster: Cluster, topic: str) -> None:
    make_topic(cluster, topic)
    write(cluster, topic, numbered(3))
    assert filtered(broker, topic, GreaterThanOrEqual(("offset",), 5)) == []
    assert filtered(broker, topic, GreaterThan(("offset",), 3), LessThan(("offset",), 2)) == []
    assert filtered(broker, topic, GreaterThan(("offset",), 0), LessThan(("offset",), 7)) == [(1, 3)]


def test_records_without_a_time_are_not_filtered_away(broker: Broker, cluster: Cluster, topic: str) -> None:
    make_topic(cluster, topic)
    write(cluster, topic, [NewRecord(b"no time", timestamp=-1), *numbered(2)])
    assert filtered(broker, topic, GreaterThan(("timestamp",), datetime(1960, 1, 1, tzinfo=UTC))) == [(0, 3)]
    assert filtered(broker, topic, GreaterThan(("timestamp",), datetime(2001, 1, 1, tzinfo=UTC))) == [(1, 3)]


def task(broker: Broker, *, fails: bool) -> ReadTask:
    return ReadTask(
        access=Access(bootstrap=broker.bootstrap), columns=("offset",), committed=True, headers=False,
        fail_on_data_loss=fails, fetch_bytes=1, quarantine="",
    )  # fmt: skip


def test_a_task_reads_what_is_left_of_its_range(broker: Broker, cluster: Cluster, topic: str) -> None:
    make_topic(cluster, topic)
    write(cluster, topic, numbered(3))
    of = TopicPartition(topic, 0)
    for start, left in ((5, []), (1, [1, 2])):
        rows = task(broker, fails=False).rows(OffsetRange(partition=of, start=start, end=9))
        assert [offset for batch in rows for offset in batch.column("offset").to_pylist()] == left
    with pytest.raises(DataLost, match="has no offset 5"):
        list(task(broker, fails=True).rows(OffsetRange(partition=of, start=5, end=9)))


def test_a_task_goes_on_behind_what_is_lost_while_it_reads(broker: Broker, cluster: Cluster, topic: str) -> None:
    make_topic(cluster, topic)
    for number in range(5):
        write(cluster, topic, numbered(1, number))
    found = []
    for batch in task(broker, fails=False).rows(OffsetRange(partition=TopicPartition(topic, 0), start=0, end=5)):
        found += batch.column("offset").to_pylist()
        if found == [0]:
            shorten(cluster, topic, 3)
    assert found in ([0, 1, 3, 4], [0, 3, 4])  # the second had been asked for before, and may have been found
