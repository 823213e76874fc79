"""A broker with a thousand partitions is up again in a moment, however it went down."""

import asyncio
import time
from typing import Any

import pytest

from tailrace.client.connection import Connection
from tailrace.ports.net import SystemNet
from tailrace.records.build import build_batch
from tailrace.records.record import NewRecord
from tailrace.testing import Broker
from tailrace.wire.messages.create_topics import CreateTopicsRequest, NewTopic
from tailrace.wire.messages.list_offsets import ListOffsetsRequest, PartitionAsked, TopicAsked
from tailrace.wire.messages.produce import PartitionToProduce, ProduceRequest, TopicToProduce

PARTITIONS = 1000
START_MAX_S = 20.0  # 0.7 s after a stop and 2.4 s after a kill, a sync for each partition, on two quiet cores


def call(broker: Broker, request: object, version: int) -> Any:
    async def run() -> Any:
        client = await Connection.connect(SystemNet(), "127.0.0.1", broker.port)
        async with asyncio.timeout(30):
            answer = await client.call(request, version)
        client.close()
        return answer

    return asyncio.run(run())


@pytest.mark.long
@pytest.mark.chaos
def test_a_thousand_partitions_start_soon() -> None:
    with Broker() as broker:
        topic = NewTopic(name="t", num_partitions=PARTITIONS, replication_factor=1)
        assert call(broker, CreateTopicsRequest(topics=(topic,)), 7).topics[0].error_code == 0
        batch = bytes(build_batch([NewRecord(value=b"v", timestamp=int(time.time() * 1000))]))
        data = tuple(PartitionToProduce(partition=number, records=batch) for number in range(PARTITIONS))
        request = ProduceRequest(acks=-1, timeout_ms=30_000, topics=(TopicToProduce(name="t", partitions=data),))
        answers = call(broker, request, 9).topics[0].partitions
        assert [one.error_code for one in answers] == [0] * PARTITIONS
        broker.kill()
        after_kill = start(broker)
        broker.stop()
        after_stop = start(broker)
        assert after_stop < after_kill < START_MAX_S, f"after a kill {after_kill:.1f} s, a stop {after_stop:.1f} s"


def start(broker: Broker) -> float:
    """Start the broker, and wait until it leads every partition again; the seconds that it takes."""
    began = time.monotonic()
    broker.start()
    while (found := ends(broker)) != [2] * PARTITIONS:  # one record, and one control batch of the first term
        assert time.monotonic() - began < START_MAX_S, f"{found.count(2)} of {PARTITIONS} partitions are led"
    return time.monotonic() - began


def ends(broker: Broker) -> list[int]:
    asked = tuple(PartitionAsked(partition=number, timestamp=-1) for number in range(PARTITIONS))
    answer = call(broker, ListOffsetsRequest(topics=(TopicAsked(name="t", partitions=asked),)), 7)
    return [one.offset for one in answer.topics[0].partitions]
