"""Records that are not there any more, or never were: found when a read is planned, or while a task reads. No Spark."""

from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from tailrace.pipeline.failure import DataLost
from tailrace.pipeline.kafka.cluster import Cluster
from tailrace.pipeline.source.options import read_options
from tailrace.pipeline.source.stream import StreamReader
from tailrace.testing import Broker
from tests.pipeline.topics import make_topic, numbered, write


def stream(broker: Broker, topic: str, **options: str) -> StreamReader:
    given = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
    return StreamReader(read_options({**given, **options}, "stream"), None)


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
        with pytest.raises(DataLost, match="was read up to offset 1000, and its log ends at 3: was it made anew"):
            reader.latestOffset(was, ReadAllAvailable())
        with pytest.raises(DataLost, match="its log ends at 3"):
            reader.partitions(was, {topic: {"0": 3}})


@pytest.mark.filterwarnings("ignore:.*was it made anew")
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
