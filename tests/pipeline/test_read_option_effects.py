"""What a reader's options do, each with a broker and without Spark."""

import json
import time
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, LongType, StructType

from tailrace.pipeline.failure import PipelineFailed
from tailrace.pipeline.kafka.cluster import Cluster, TopicPartition
from tailrace.pipeline.kafka.offsets import committed_offsets
from tailrace.pipeline.sink.committing import abort_all
from tailrace.pipeline.sink.options import write_options
from tailrace.pipeline.sink.write_task import Attempt, write_rows
from tailrace.pipeline.source.batch import BatchReader
from tailrace.pipeline.source.offset_json import OffsetJson
from tailrace.pipeline.source.options import read_options
from tailrace.pipeline.source.stream import StreamReader
from tailrace.testing import Broker
from tests.pipeline.topics import FIRST_TIME, make_topic, numbered, write

columns = StructType().add("offset", LongType()).add("value", BinaryType())
LONG_S = 30.0


def stream(broker: Broker, topic: str, **options: str) -> StreamReader:
    given = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
    return StreamReader(read_options({**given, **options}, "stream"), columns)


def batch(broker: Broker, **options: str) -> BatchReader:
    return BatchReader(read_options({"kafka.bootstrap.servers": broker.bootstrap, **options}, "batch"), columns)


def planned(broker: Broker, **options: str) -> list[tuple[int, int, int]]:
    """Partition, start and end of each task."""
    found = [one.value for one in batch(broker, **options).partitions()]
    return [(one.partition.partition, one.start, one.end) for one in found]


def rows(broker: Broker, **options: str) -> Sequence[pa.RecordBatch]:
    reader = batch(broker, **options)
    return [rows for partition in reader.partitions() for rows in reader.read(partition)]


def values(broker: Broker, **options: str) -> list[bytes]:
    return [value for one in rows(broker, **options) for value in one.column("value").to_pylist()]


@pytest.fixture
def filled(cluster: Cluster, topic: str) -> str:
    """A topic with ten records in its first partition and four in its second, a second apart."""
    make_topic(cluster, topic, 2)
    write(cluster, topic, numbered(10))
    write(cluster, topic, numbered(4), partition=1)
    return topic


def after(reader: StreamReader, start: OffsetJson) -> Any:
    return reader.latestOffset(start, reader.getDefaultReadLimit())


def test_a_batch_waits_for_min_offsets_but_not_the_first(broker: Broker, cluster: Cluster, filled: str) -> None:
    """As in Spark's own source, whose first batch does not know of one before it."""
    reader = stream(broker, filled, minOffsetsPerTrigger="20", maxTriggerDelay="1h")
    first = after(reader, reader.initialOffset())
    assert first == {filled: {"0": 10, "1": 4}}
    write(cluster, filled, numbered(19))
    assert after(reader, first) == first
    write(cluster, filled, numbered(1), partition=1)
    assert after(reader, first) == {filled: {"0": 29, "1": 5}}


def test_no_batch_waits_longer_than_the_delay(broker: Broker, cluster: Cluster, filled: str) -> None:
    reader = stream(broker, filled, minOffsetsPerTrigger="100", maxTriggerDelay="300ms")
    begun = time.monotonic()
    first = end = after(reader, reader.initialOffset())
    write(cluster, filled, numbered(1))
    while end == first:
        assert time.monotonic() < begun + LONG_S
        end = after(reader, first)
    assert end == {filled: {"0": 11, "1": 4}}
    assert time.monotonic() - begun >= 0.3


def test_the_delay_runs_anew_when_it_is_over_without_a_record(broker: Broker, cluster: Cluster, filled: str) -> None:
    reader = stream(broker, filled, minOffsetsPerTrigger="2", maxTriggerDelay="1h")
    end = {filled: {"0": 10, "1": 4}}
    assert after(reader, end) == end  # the first: let go, with nothing in it
    write(cluster, filled, numbered(1))
    assert after(reader, end) == end


def test_a_batch_has_its_most_even_if_it_waited_for_its_least(broker: Broker, filled: str) -> None:
    reader = stream(broker, filled, minOffsetsPerTrigger="5", maxOffsetsPerTrigger="7")
    assert after(reader, reader.initialOffset()) == {filled: {"0": 5, "1": 2}}


def test_a_read_that_ends_with_what_is_there_waits_for_nothing(broker: Broker, cluster: Cluster, filled: str) -> None:
    reader = stream(broker, filled, minOffsetsPerTrigger="100", maxTriggerDelay="1h")
    first = after(reader, reader.initialOffset())
    write(cluster, filled, numbered(1))
    reader.prepareForTriggerAvailableNow()
    assert after(reader, first) == {filled: {"0": 11, "1": 4}}


def test_partitions_are_assigned(broker: Broker, filled: str) -> None:
    assert planned(broker, assign=json.dumps({filled: [1]})) == [(1, 0, 4)]
    with pytest.raises(PipelineFailed, match=f"assign names partitions that are not there: {filled}-2"):
        planned(broker, assign=json.dumps({filled: [1, 2]}))


def times(topic: str, *seconds: int) -> str:
    return json.dumps({topic: {str(number): FIRST_TIME + 1000 * one for number, one in enumerate(seconds)}})


def test_a_start_by_times_and_where_no_record_is_that_late(broker: Broker, filled: str) -> None:
    told = {"subscribe": filled, "startingOffsetsByTimestamp": times(filled, 4, 99)}
    for strategy in ({}, {"startingOffsetsByTimestampStrategy": "error"}):
        with pytest.raises(PipelineFailed, match=f"no record of {filled}-1 is as late as {FIRST_TIME + 99_000}"):
            planned(broker, **told, **strategy)
    assert planned(broker, **told, startingOffsetsByTimestampStrategy="latest") == [(0, 4, 10)]
    assert planned(broker, subscribe=filled, startingOffsetsByTimestamp=times(filled, 4, 1)) == [(0, 4, 10), (1, 1, 4)]


def test_an_end_by_times_is_the_end_where_no_record_is_that_late(broker: Broker, filled: str) -> None:
    told = {"subscribe": filled, "endingOffsetsByTimestamp": times(filled, 4, 99)}
    assert planned(broker, **told) == [(0, 0, 4), (1, 0, 4)]


def test_tasks_have_no_more_than_max_records(broker: Broker, filled: str) -> None:
    wanted = [(0, 0, 2), (0, 2, 5), (0, 5, 7), (0, 7, 10), (1, 0, 2), (1, 2, 4)]
    assert planned(broker, subscribe=filled, maxRecordsPerPartition="3") == wanted


@pytest.mark.parametrize(("query", "group"), [({"queryId": "bills"}, "-bills"), ({}, "")])
def test_offsets_are_committed_to_the_group_of_the_prefix(
    broker: Broker, cluster: Cluster, filled: str, query: dict[str, str], group: str
) -> None:
    reader = stream(broker, filled, groupIdPrefix=f"of-{filled}", **query)
    reader.commit({filled: {"0": 7, "1": 2}})
    partitions = [TopicPartition(filled, number) for number in range(2)]
    assert list(committed_offsets(cluster, f"of-{filled}{group}", partitions).values()) == [7, 2]


def test_uncommitted_records_are_read_when_asked_for(broker: Broker, cluster: Cluster, topic: str) -> None:
    make_topic(cluster, topic)
    at = {"kafka.bootstrap.servers": broker.bootstrap}
    sink = write_options({**at, "topic": topic, "exactlyOnce": "true", "sinkId": topic})
    open_ones = write_rows(sink, iter([pa.record_batch({"value": pa.array([b"a", b"b"])})]), Attempt(0, 0, "q", 0))
    levels = [{"kafka.isolation.level": f"read_{one}"} for one in ("uncommitted", "committed")] + [{}]
    assert [values(broker, subscribe=topic, **level) for level in levels] == [[b"a", b"b"], [], []]
    abort_all(sink, [open_ones])
    write(cluster, topic, numbered(1))
    deadline = time.monotonic() + LONG_S
    while not values(broker, subscribe=topic):  # the marker comes some time after the answer
        assert time.monotonic() < deadline
    found = [values(broker, subscribe=topic, **level) for level in levels]
    assert found == [[b"a", b"b", b"value 0"], [b"value 0"], [b"value 0"]]


def test_a_task_asks_for_so_many_bytes_at_once(broker: Broker, cluster: Cluster, topic: str) -> None:
    make_topic(cluster, topic)
    for number in range(3):
        write(cluster, topic, numbered(2, 2 * number))
    assert [len(one) for one in rows(broker, subscribe=topic)] == [6]
    assert [len(one) for one in rows(broker, subscribe=topic, **{"kafka.max.partition.fetch.bytes": "1"})] == [2, 2, 2]
