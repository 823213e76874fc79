"""One simulated broker and one client, for tests that inject one fault at a time.

    @staged
    async def test_…(stage: Stage) -> None:
        await stage.start()
        await stage.make_topic("t")
        ...

The broker is a real `Node` with its Kafka listener. Tests observe it over the wire or on its disk, and read its state
only to wait for a condition.
"""

import asyncio
import functools
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from tailrace.broker.node import Node
from tailrace.broker.starting import start_broker
from tailrace.client.connection import Connection
from tailrace.doors.kafka import open_door
from tailrace.model.settings import Settings
from tailrace.records.build import build_batch
from tailrace.records.opened import batches, open_batch
from tailrace.records.record import NewRecord
from tailrace.testing.simulation import World
from tailrace.wire.messages.create_topics import CreateTopicsRequest, NewTopic, NewTopicConfig
from tailrace.wire.messages.delete_topics import DeleteTopicsRequest, TopicToDelete
from tailrace.wire.messages.fetch import FetchRequest, PartitionToFetch, TopicToFetch
from tailrace.wire.messages.init_producer_id import InitProducerIdRequest
from tailrace.wire.messages.list_offsets import ListOffsetsRequest, PartitionAsked, TopicAsked
from tailrace.wire.messages.produce import PartitionProduced, PartitionToProduce, ProduceRequest, TopicToProduce

HOST = "broker"
DATA_DIR = "/data"
ANSWER_MAX_S = 20.0  # virtual
START_MAX_S = 60.0  # virtual
Producer = tuple[int, int, int]  # id, epoch, first sequence


class Stage:
    def __init__(self, world: World) -> None:
        self.world = world
        self.broker = world.machine(HOST)
        self.storage = self.broker.storage
        self._clients = world.machine("client")
        self._net = self._clients.boot().net
        self._client: Connection | None = None
        self.node: Node

    # Starts and stops

    async def start(self, **settings: Any) -> None:
        """Boot the broker and wait until it serves clients; raises what keeps it from starting."""
        ports = self.broker.boot()
        self._client = None

        async def serve() -> Node:
            node = await start_broker(ports, Settings(**{"host": HOST, "data_dir": DATA_DIR, **settings}))
            await open_door(node)
            return node

        self.node = await self.broker.run(asyncio.wait_for(serve(), START_MAX_S))

    async def stop(self) -> None:
        await self.broker.run(self.node.stop())
        self.broker.crash(power_loss=False)

    def kill(self) -> None:
        self.broker.crash(power_loss=False)

    def cut_power(self) -> None:
        self.broker.crash(power_loss=True)

    @property
    def failed(self) -> bool:
        """Whether the whole broker gave up."""
        return self.node.background.failed.done()

    # Client requests

    async def call(self, request: object, version: int) -> Any:
        async def send() -> Any:
            if self._client is None or self._client.transport is None:
                self._client = await Connection.connect(self._net, HOST, 9092, "stage")
            return await asyncio.wait_for(self._client.call(request, version), ANSWER_MAX_S)

        return await self._clients.run(send())

    async def make_topic(self, name: str, partitions: int = 1, **settings: object) -> Any:
        configs = tuple(NewTopicConfig(name=key.replace("_", "."), value=str(one)) for key, one in settings.items())
        topic = NewTopic(name=name, num_partitions=partitions, replication_factor=1, configs=configs)
        return (await self.call(CreateTopicsRequest(topics=(topic,)), 7)).topics[0]

    async def delete_topic(self, name: str) -> int:
        answer = await self.call(DeleteTopicsRequest(topics=(TopicToDelete(name=name),)), 6)
        code: int = answer.topics[0].error_code
        return code

    async def produce(
        self,
        topic: str,
        *values: bytes,
        partition: int = 0,
        acks: int = -1,
        producer: Producer = (-1, -1, -1),
        timestamp: int | None = None,
    ) -> PartitionProduced:
        """Send one batch; returns the partition's response."""
        when = self.broker.clock.wall_ms() if timestamp is None else timestamp
        records = [NewRecord(value=value, timestamp=when) for value in values]
        producer_id, epoch, sequence = producer
        batch = build_batch(records, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
        data = TopicToProduce(name=topic, partitions=(PartitionToProduce(partition=partition, records=bytes(batch)),))
        answer = await self.call(ProduceRequest(acks=acks, timeout_ms=15_000, topics=(data,)), 9)
        produced: PartitionProduced = answer.topics[0].partitions[0]
        return produced

    async def fetch(self, topic: str, offset: int, partition: int = 0, max_bytes: int = 1 << 20) -> Any:
        wanted = PartitionToFetch(partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes)
        request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=(TopicToFetch(name=topic, partitions=(wanted,)),))
        return (await self.call(request, 11)).topics[0].partitions[0]

    async def read(self, topic: str, offset: int = 0, partition: int = 0) -> list[bytes]:
        """All record values from `offset` on; fails if a fetch gets an error."""
        values: list[bytes] = []
        while True:
            answer = await self.fetch(topic, offset, partition)
            assert answer.error_code == 0, f"fetch at {offset} got error {answer.error_code}"
            if not answer.records:
                assert offset == answer.high_watermark
                return values
            for batch, header in batches(answer.records):
                if not header.is_control:
                    values += [one.value or b"" for one in open_batch(batch) if one.offset >= offset]
                offset = header.last_offset + 1

    async def offsets(self, topic: str, timestamps: Sequence[int] = (-2, -1), partition: int = 0) -> list[Any]:
        """The ListOffsets responses, by default for the earliest and the latest offset."""
        answers = []
        for timestamp in timestamps:
            asked = PartitionAsked(partition=partition, timestamp=timestamp)
            request = ListOffsetsRequest(topics=(TopicAsked(name=topic, partitions=(asked,)),))
            answers.append((await self.call(request, 8)).topics[0].partitions[0])
        return answers

    async def span(self, topic: str, partition: int = 0) -> tuple[int, int]:
        """The earliest and the latest offset."""
        start, end = await self.offsets(topic, partition=partition)
        return start.offset, end.offset

    async def producer_id(self) -> int:
        answer = await self.call(InitProducerIdRequest(transaction_timeout_ms=0), 1)
        assert answer.error_code == 0
        number: int = answer.producer_id
        return number

    # Files

    def folder(self, topic: str, partition: int = 0) -> str:
        return self.node.hosted.find(topic, partition).log.folder

    def files(self, folder: str = DATA_DIR) -> dict[str, bytes]:
        """Every file below a folder, with its content."""
        return {
            path: bytes(content.visible)
            for path, content in self.storage.tree.files()
            if path.startswith(folder.rstrip("/") + "/")
        }

    def segments(self, topic: str, partition: int = 0) -> list[str]:
        return [path for path in self.files(self.folder(topic, partition)) if path.endswith(".log")]


def staged(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run an async test in the simulated world of its stage."""

    @functools.wraps(test)
    def run(stage: Stage, **fixtures: Any) -> None:
        async def play() -> None:
            await test(stage, **fixtures)

        stage.world.run(play())

    return run
