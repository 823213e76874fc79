"""A client that behaves, beside the fuzz: it writes, reads back and asks for metadata, and must not notice anything."""

import asyncio
import time
from typing import Any, Final

from tailrace.client.connection import Connection
from tailrace.model.ids import Id
from tailrace.ports import system_ports
from tailrace.records.build import build_batch
from tailrace.records.opened import batches, open_batch
from tailrace.records.record import NewRecord
from tailrace.wire.messages.create_topics import CreateTopicsRequest, NewTopic
from tailrace.wire.messages.fetch import FetchRequest, PartitionToFetch, TopicToFetch
from tailrace.wire.messages.list_offsets import ListOffsetsRequest, PartitionAsked, TopicAsked
from tailrace.wire.messages.metadata import MetadataRequest, TopicWanted
from tailrace.wire.messages.produce import PartitionToProduce, ProduceRequest, TopicToProduce

TOPIC: Final = "control"
ROUND_TRIP_MAX_S: Final = 5.0  # produce, fetch and metadata together, on a busy machine
PAUSE_S: Final = 0.02


class Control:
    def __init__(self, client: Connection) -> None:
        self._client = client
        self._offset = 0
        self.stopping = False
        self.rounds = 0
        self.slowest_s = 0.0

    @classmethod
    async def connect(cls, port: int) -> "Control":
        return cls(await Connection.connect(system_ports().net, "127.0.0.1", port))

    async def make_topics(self, names: list[str], partitions: int) -> dict[str, Id]:
        topics = tuple(NewTopic(name=name, num_partitions=partitions, replication_factor=1) for name in names)
        answer = await self._client.call(CreateTopicsRequest(topics=topics, timeout_ms=5000), 7)
        assert all(one.error_code == 0 for one in answer.topics), answer
        return {one.name: Id(one.topic_id) for one in answer.topics}

    async def broker_id(self) -> int:
        answer = await self._client.call(MetadataRequest(topics=()), 9)
        number: int = answer.brokers[0].node_id
        return number

    async def run(self) -> None:
        """Round trips until `stopping` is set; TimeoutError when one takes too long."""
        while not self.stopping:
            await self.round_trip()
            await asyncio.sleep(PAUSE_S)

    async def round_trip(self) -> None:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        async with asyncio.timeout(ROUND_TRIP_MAX_S):
            value = f"round {self.rounds}".encode()
            answered = await self._produce(value)
            assert (answered.error_code, answered.base_offset) == (0, self._offset), answered
            assert await self._fetch(self._offset) == value
            answer = await self._client.call(MetadataRequest(topics=(TopicWanted(name=TOPIC),)), 9)
            assert answer.topics[0].error_code == 0, answer
        self._offset += 1
        self.rounds += 1
        self.slowest_s = max(self.slowest_s, loop.time() - begun)

    async def _produce(self, value: bytes) -> Any:
        batch = bytes(build_batch([NewRecord(value=value, timestamp=int(time.time() * 1000))]))
        data = TopicToProduce(name=TOPIC, partitions=(PartitionToProduce(partition=0, records=batch),))
        answer = await self._client.call(ProduceRequest(acks=-1, timeout_ms=5000, topics=(data,)), 9)
        return answer.topics[0].partitions[0]

    async def _fetch(self, offset: int) -> bytes | None:
        part = PartitionToFetch(partition=0, fetch_offset=offset, partition_max_bytes=1000)
        request = FetchRequest(
            max_wait_ms=1000, min_bytes=1, max_bytes=1000, topics=(TopicToFetch(name=TOPIC, partitions=(part,)),)
        )
        answer = await self._client.call(request, 12)
        data = answer.topics[0].partitions[0].records
        return next((record.value for batch, _ in batches(data) for record in open_batch(batch)), None)

    def close(self) -> None:
        self._client.close()

    async def go_on_from(self, offset: int) -> None:
        """After a restart: all that was written is there, and this is the end of it."""
        self._offset = self.rounds = offset
        assert await self._fetch(offset - 1) == f"round {offset - 1}".encode()

    async def find_end(self) -> None:
        """Take up where others have written before."""
        asked = TopicAsked(name=TOPIC, partitions=(PartitionAsked(partition=0, timestamp=-1),))
        answer = await self._client.call(ListOffsetsRequest(replica_id=-1, topics=(asked,)), 7)
        self._offset = answer.topics[0].partitions[0].offset
