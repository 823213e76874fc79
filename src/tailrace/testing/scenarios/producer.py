"""A client that remembers what it was promised.

It sends numbered records, idempotent and acks=all, one batch at a time, and sends a batch again, with the same
sequence, until it is acknowledged: over new connections, through restarts of the broker. What was acknowledged, and at
which offset, is its memory; `history` is checked against it.
"""

import asyncio
import random
from dataclasses import dataclass, field
from typing import Final

from tailrace.ports import Ports
from tailrace.records.build import build_batch
from tailrace.records.compress import Compression
from tailrace.records.record import NewRecord
from tailrace.wire.client import WireClient
from tailrace.wire.errors import Error
from tailrace.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from tailrace.wire.messages.produce import (
    PartitionProduced,
    PartitionToProduce,
    ProduceRequest,
    ProduceResponse,
    TopicToProduce,
)

answer_max_seconds = 5.0
retry_seconds = 0.05
compressions_tried: Final[list[Compression]] = ["none", "none", "zstd", "lz4"]


@dataclass(slots=True)
class Promises:
    """What a producer has sent, and what it was told."""

    sent: int = 0  # records 0 … sent - 1 were handed to the broker at least once
    acknowledged: dict[int, int] = field(default_factory=dict)  # record number -> offset


class RememberingProducer:
    def __init__(self, ports: Ports, chance: random.Random, name: str, broker: str, topic: str, partition: int) -> None:
        self.name = name
        self.partition = partition
        self.promises = Promises()
        self.stopping = False
        self._ports = ports
        self._chance = chance
        self._broker = broker
        self._topic = topic
        self._client: WireClient | None = None

    async def run(self) -> None:
        producer_id = await self._producer_id()
        while not self.stopping:
            count = self._chance.randrange(1, 6)
            first = self.promises.sent
            self.promises.sent += count
            batch = self._batch(producer_id, first, count)
            while True:
                answer = await self._try_to_produce(batch)
                if answer is not None:
                    break
                await asyncio.sleep(retry_seconds)
            for number in range(count):
                self.promises.acknowledged[first + number] = answer.base_offset + number
            if self._chance.random() < 0.1:
                await asyncio.sleep(self._chance.random() * 0.05)

    def _batch(self, producer_id: int, first: int, count: int) -> bytes:
        now_ms = self._ports.clock.wall_ms()
        size = self._chance.choice([0, 10, 200])
        records = [
            NewRecord(key=self.name.encode(), value=f"{number} ".encode() + b"x" * size, timestamp=now_ms)
            for number in range(first, first + count)
        ]
        compression = self._chance.choice(compressions_tried)
        return bytes(
            build_batch(
                records, compression=compression, producer_id=producer_id, producer_epoch=0, base_sequence=first
            )
        )

    async def _producer_id(self) -> int:
        while True:
            try:
                client = await self._connected()
                answer: InitProducerIdResponse = await asyncio.wait_for(
                    client.call(InitProducerIdRequest(transaction_timeout_ms=0), 1), answer_max_seconds
                )
                if answer.error_code == 0:
                    return answer.producer_id
            except (OSError, TimeoutError):
                self._disconnect()
            await asyncio.sleep(retry_seconds)

    async def _try_to_produce(self, batch: bytes) -> PartitionProduced | None:
        """One attempt; None: it must be tried again, for nobody knows what became of it."""
        partition = PartitionToProduce(partition=self.partition, records=batch)
        topic = TopicToProduce(name=self._topic, partitions=(partition,))
        request = ProduceRequest(acks=-1, timeout_ms=2000, topics=(topic,))
        try:
            client = await self._connected()
            response: ProduceResponse = await asyncio.wait_for(client.call(request, 9), answer_max_seconds)
        except (OSError, TimeoutError):
            self._disconnect()
            return None
        answer = response.topics[0].partitions[0]
        if answer.error_code == 0:
            return answer
        if not Error(answer.error_code).retriable:
            raise AssertionError(f"{self.name}: the broker refused a batch: {Error(answer.error_code).name}")
        return None

    async def _connected(self) -> WireClient:
        if self._client is None or self._client.transport is None:
            self._client = await asyncio.wait_for(
                WireClient.connect(self._ports.net, self._broker, 9092, self.name), answer_max_seconds
            )
        return self._client

    def _disconnect(self) -> None:
        if self._client is not None:
            self._client.close()
        self._client = None
