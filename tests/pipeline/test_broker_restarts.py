"""Reading and writing go on when a broker is killed in the midst: nothing is lost, nothing comes twice."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tailrace.pipeline.arrow.columns import decode
from tailrace.pipeline.arrow.encode import Rows
from tailrace.pipeline.failure import DataLost, NoBrokerAvailable, PipelineFailed
from tailrace.pipeline.kafka.cluster import Cluster, TopicPartition
from tailrace.pipeline.kafka.fetching import OffsetRange, fetch
from tailrace.pipeline.kafka.producer import Producer
from tailrace.pipeline.kafka.transactions import init_producer_id
from tailrace.pipeline.sink.progress import read_progress
from tailrace.testing import Broker
from tailrace.wire.errors import Error
from tailrace.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from tests.pipeline.test_sink import records
from tests.pipeline.topics import make_topic, numbered, shorten, write


def kill_and_start(broker: Broker) -> None:
    broker.kill()
    broker.restart()


def test_a_reader_goes_on() -> None:
    with Broker(fsync="never") as broker, Cluster(broker.bootstrap) as cluster:
        make_topic(cluster, "t")
        for number in range(20):
            write(cluster, "t", numbered(10, 10 * number))
        found: list[int] = []
        wanted = OffsetRange(partition=TopicPartition("t", 0), start=0, end=200)
        for number, chosen in enumerate(fetch(cluster, wanted, committed=True, max_bytes=400)):
            columns = decode(chosen)
            found += columns.offset.tolist() if columns is not None else []
            if number == 5:
                kill_and_start(broker)
        assert found == list(range(200))


def test_a_writer_goes_on() -> None:
    with Broker(fsync="never") as broker, Cluster(broker.bootstrap) as cluster:
        make_topic(cluster, "t")
        producer = Producer(cluster, init_producer_id(cluster), batch_bytes=200)
        for number in range(10):
            values = [b"%d" % value for value in range(10 * number, 10 * number + 10)]
            rows = Rows(key=pa.nulls(10, pa.binary()), value=pa.array(values), timestamp=np.ones(10, np.int64))
            producer.write(TopicPartition("t", 0), rows)
            if number == 5:
                kill_and_start(broker)
        producer.flush()
        assert [record.value for record in records(cluster, "t")] == [b"%d" % value for value in range(100)]


def test_a_broker_that_stays_away_is_given_up() -> None:
    with pytest.raises(NoBrokerAvailable, match=r"no broker at 127\.0\.0\.1:1: .*given up after 0\.2 s"):
        Cluster("127.0.0.1:1", retry_timeout_s=0.2).partitions(["t"])
    with pytest.raises(PipelineFailed, match="'nonsense' is not HOST:PORT"):
        Cluster("nonsense")


def test_what_is_gone_is_lost(cluster: Cluster, topic: str) -> None:
    make_topic(cluster, topic)
    for number in range(3):
        write(cluster, topic, numbered(10, 10 * number))
    shorten(cluster, topic, 20)
    wanted = OffsetRange(partition=TopicPartition(topic, 0), start=5, end=30)
    with pytest.raises(DataLost, match="has no offset 5 any more"):
        list(fetch(cluster, wanted, committed=True))


def test_a_coordinator_that_is_not_there_yet_is_asked_for_again(
    broker: Broker, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when its topic is being created, or its leader has just died."""
    call_any, refusals = cluster.core.call_any, [Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_COORDINATOR]

    async def refuse_at_first(request: object) -> Any:
        if isinstance(request, FindCoordinatorRequest) and refusals:
            return FindCoordinatorResponse(error_code=refusals.pop())
        return await call_any(request)

    monkeypatch.setattr(cluster.core, "call_any", refuse_at_first)
    assert read_progress(cluster, "sink-that-never-wrote") is None
    assert not refusals
