"""A broker inside the test's own event loop, and a client connected to it over loopback."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from tailrace.broker.node import Node
from tailrace.broker.starting import start_broker
from tailrace.client.connection import Connection
from tailrace.doors.kafka import open_door
from tailrace.doors.kafka.door import KafkaDoor
from tailrace.model.settings import Settings
from tailrace.ports import system_ports
from tailrace.records.build import build_batch
from tailrace.records.record import NewRecord
from tailrace.wire.messages import MESSAGES
from tailrace.wire.messages.create_topics import CreateTopicsRequest, NewTopic, NewTopicConfig
from tailrace.wire.messages.produce import PartitionToProduce, ProduceRequest, TopicToProduce

T = TypeVar("T")

ANSWER_MAX_S: Final = 10.0


class Served:
    """A running broker, and a client connected to it."""

    def __init__(self, node: Node, door: KafkaDoor, client: Connection) -> None:
        self.node = node
        self.door = door
        self.client = client

    async def call(self, request: object, version: int) -> Any:
        async with asyncio.timeout(ANSWER_MAX_S):
            return await self.client.call(request, version)

    async def make_topic(self, name: str, partitions: int = 1, **settings: str) -> bytes:
        """A topic, with settings given as retention_ms="1"; its id."""
        configs = tuple(NewTopicConfig(name=key.replace("_", "."), value=value) for key, value in settings.items())
        topic = NewTopic(name=name, num_partitions=partitions, replication_factor=1, configs=configs)
        answer = await self.call(CreateTopicsRequest(topics=(topic,)), 7)
        assert answer.topics[0].error_code == 0, answer.topics[0].error_message
        topic_id: bytes = answer.topics[0].topic_id
        return topic_id

    async def produce(self, topic: str, *timestamps: int, partition: int = 0, value: bytes = b"v") -> int:
        """Append one batch with a record for each timestamp; its base offset."""
        batch = build_batch([NewRecord(value=value, timestamp=timestamp) for timestamp in timestamps])
        data = TopicToProduce(name=topic, partitions=(PartitionToProduce(partition=partition, records=bytes(batch)),))
        answer = await self.call(ProduceRequest(acks=-1, timeout_ms=5000, topics=(data,)), 9)
        appended = answer.topics[0].partitions[0]
        assert appended.error_code == 0
        base: int = appended.base_offset
        return base


@asynccontextmanager
async def serving(folder: Path, **settings: Any) -> AsyncIterator[Served]:
    ports = system_ports()
    chosen = {"data_dir": str(folder), "kafka_port": 0, "fsync": "never", **settings}
    node = await start_broker(ports, Settings(**chosen))
    door = await open_door(node)
    client = await Connection.connect(ports.net, "127.0.0.1", door.port)
    try:
        yield Served(node, door, client)
    finally:
        client.close()
        door.close()
        await node.stop()


def versions(api_key: int) -> range:
    """Every version of an API."""
    said = MESSAGES[api_key].versions
    return range(said.first, said.last + 1)


def with_broker(**settings: Any) -> Callable[[Callable[[Served], Awaitable[None]]], Callable[[Path], None]]:
    """A test that gets a fresh broker."""
    return given(lambda folder: serving(folder, **settings))


def given(
    start: Callable[[Path], AbstractAsyncContextManager[T]],
) -> Callable[[Callable[[T], Awaitable[None]]], Callable[[Path], None]]:
    """A test that gets what is started in its folder."""

    def decorate(test: Callable[[T], Awaitable[None]]) -> Callable[[Path], None]:
        async def run(folder: Path) -> None:
            async with start(folder) as started:
                await test(started)

        def call(tmp_path: Path) -> None:
            asyncio.run(run(tmp_path))

        call.__name__, call.__doc__, call.__module__ = test.__name__, test.__doc__, test.__module__
        return call

    return decorate
