"""Foreign consumers make of our answers what was committed: three of them, over many transactions in many segments.

The producers are our own wire client, and so is who writes the markers: whichever order a seed gives. The last message
is committed by nobody's transaction; who has read it has read all.
"""

import asyncio
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Place
from kafka import KafkaConsumer
from kafka import TopicPartition as KafkaPlace

from tailrace.records.build import build_batch
from tailrace.records.record import NewRecord
from tailrace.wire.errors import Error
from tests.interop.client import DEADLINE_S
from tests.unit.doors.kafka.served import Served, serving
from tests.unit.doors.kafka.transacting import mark, now_ms, oracle_for, send

pytestmark = pytest.mark.foreign
LAST = "the last"
PRODUCERS = (1, 2, 3)
Read = Callable[[int, str], list[str]]


def librdkafka(port: int, isolation: str) -> list[str]:
    consumer = Consumer({"bootstrap.servers": f"127.0.0.1:{port}", "group.id": "g", "isolation.level": isolation})
    consumer.assign([Place("t", 0, 0)])
    values: list[str] = []
    while LAST not in values:
        message = consumer.poll(DEADLINE_S)
        assert message is not None
        assert message.error() is None
        value = message.value()
        assert value is not None
        values.append(value.decode())
    consumer.close()
    return values


def kafka_python(port: int, isolation: str) -> list[str]:
    consumer = KafkaConsumer(
        bootstrap_servers=f"127.0.0.1:{port}",
        isolation_level=isolation,
        enable_auto_commit=False,
        consumer_timeout_ms=1000 * DEADLINE_S,
    )
    consumer.assign([KafkaPlace("t", 0)])
    consumer.seek(KafkaPlace("t", 0), 0)
    values: list[str] = []
    for message in consumer:
        values.append(message.value.decode())
        if values[-1] == LAST:
            break
    consumer.close()
    return values


def aiokafka(port: int, isolation: str) -> list[str]:
    async def read() -> list[str]:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=f"127.0.0.1:{port}", isolation_level=isolation, enable_auto_commit=False
        )
        await consumer.start()
        consumer.assign([TopicPartition("t", 0)])
        consumer.seek(TopicPartition("t", 0), 0)
        values: list[str] = []
        while LAST not in values:
            values.append((await asyncio.wait_for(consumer.getone(), DEADLINE_S)).value.decode())
        await consumer.stop()
        return values

    return asyncio.run(read())


async def fill(served: Served, chance: random.Random) -> tuple[list[str], list[str]]:
    """What was sent, and what of it was committed, in the order of the log."""
    sent: list[str] = []
    committed: dict[str, None] = {}
    undecided: dict[int, list[str]] = {producer: [] for producer in PRODUCERS}
    sequences = dict.fromkeys(PRODUCERS, 0)

    async def end(producer: int, *, commits: bool) -> None:
        assert await mark(served, producer=producer, commits=commits) == Error.NONE
        committed.update(dict.fromkeys(undecided[producer] if commits else ()))
        undecided[producer] = []

    for number in range(150):
        producer = chance.choice(PRODUCERS)
        if undecided[producer] and chance.random() < 0.3:
            await end(producer, commits=chance.random() < 0.5)
            continue
        sent.append(f"{number} of {producer}")
        error, _ = await send(served, sent[-1], producer=producer, sequence=sequences[producer])
        assert error == Error.NONE
        undecided[producer].append(sent[-1])
        sequences[producer] += 1
    for producer in PRODUCERS:
        await end(producer, commits=chance.random() < 0.5)
    batch = build_batch([NewRecord(value=LAST.encode(), timestamp=now_ms())])
    served.node.hosted.find("t", 0).append(memoryview(batch), 1)
    return [*sent, LAST], [*(value for value in sent if value in committed), LAST]


@pytest.mark.parametrize("read", [librdkafka, kafka_python, aiokafka])
def test_committed_records_and_no_others_are_seen(tmp_path: Path, read: Read) -> None:
    async def run() -> None:
        async with serving(tmp_path) as served:
            await served.make_topic("t", segment_bytes="2000")
            oracle_for(served)
            sent, committed = await fill(served, random.Random(read.__name__))
            assert await asyncio.to_thread(read, served.door.port, "read_committed") == committed
            assert await asyncio.to_thread(read, served.door.port, "read_uncommitted") == sent

    asyncio.run(run())
