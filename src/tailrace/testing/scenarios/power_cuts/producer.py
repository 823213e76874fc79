"""An idempotent producer that records what the broker acknowledged, for `read_back` to check.

It sends numbered records with acks=all, in up to four pipelined batches. It retries each batch that was not
acknowledged, with the same sequences, until it is: over new connections and across restarts of the broker.
"""

import asyncio
import random
from typing import Final, NamedTuple

from tailrace.ports import Ports
from tailrace.records.build import build_batch
from tailrace.records.compress import Compression
from tailrace.records.record import NewRecord
from tailrace.testing.scenarios.reconnecting_client import RETRY_SECONDS, ReconnectingClient
from tailrace.wire.errors import Error
from tailrace.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from tailrace.wire.messages.produce import (
    PartitionToProduce,
    ProduceRequest,
    ProduceResponse,
    TopicToProduce,
)

PRODUCE_VERSION: Final = 9
COMPRESSIONS: Final[list[Compression]] = ["none", "none", "none", "none", "zstd", "lz4"]


class UnacknowledgedBatch(NamedTuple):
    first: int  # record number
    records: int
    request: ProduceRequest


class CheckedProducer:
    def __init__(self, ports: Ports, rng: random.Random, name: str, broker: str, topic: str, partition: int) -> None:
        self.name = name
        self.topic = topic
        self.partition = partition
        self.sent = 0  # records 0 to sent - 1 were sent at least once
        self.acknowledged: dict[int, int] = {}  # record number → offset
        self.refused = 0  # responses with a retriable error
        self.stopping = False
        self.producer_id = -1
        self._ports = ports
        self._rng = rng
        self._client = ReconnectingClient(ports, name, broker)

    async def run(self) -> None:
        self.producer_id = await self._init_producer_id()
        while not self.stopping:
            # the first batch is sent alone: like Kafka, the broker accepts any sequence from a producer new to it
            size = self._rng.choice([1, 1, 2, 4]) if self.acknowledged else 1
            window = [self._next() for _ in range(size)]
            while window:
                window = await self._send(window)
            if self._rng.random() < 0.2:
                await asyncio.sleep(self._rng.random() * 0.05)

    def _next(self) -> UnacknowledgedBatch:
        first, count = self.sent, self._rng.randrange(1, 6)
        self.sent += count
        partition = PartitionToProduce(partition=self.partition, records=self._batch(first, count))
        topic = TopicToProduce(name=self.topic, partitions=(partition,))
        return UnacknowledgedBatch(first, count, ProduceRequest(acks=-1, timeout_ms=2000, topics=(topic,)))

    def _batch(self, first: int, count: int) -> bytes:
        now_ms = self._ports.clock.wall_ms()
        size = self._rng.choice([0, 10, 200])
        records = [
            NewRecord(key=self.name.encode(), value=f"{number} ".encode() + b"x" * size, timestamp=now_ms)
            for number in range(first, first + count)
        ]
        return bytes(
            build_batch(
                records,
                compression=self._rng.choice(COMPRESSIONS),
                producer_id=self.producer_id,
                producer_epoch=0,
                base_sequence=first,
            )
        )

    async def _init_producer_id(self) -> int:
        while True:
            request = InitProducerIdRequest(transaction_timeout_ms=0)
            answer: InitProducerIdResponse = await self._client.call_until_answered(request, 1)
            if answer.error_code == 0:
                return answer.producer_id
            await asyncio.sleep(RETRY_SECONDS)

    async def _send(self, window: list[UnacknowledgedBatch]) -> list[UnacknowledgedBatch]:
        """Send all batches once; returns those that have to be sent again, in order."""
        responses: list[ProduceResponse | None] = await self._client.call_pipelined(
            [batch.request for batch in window], PRODUCE_VERSION
        )
        unacknowledged: list[UnacknowledgedBatch] = []
        for batch, response in zip(window, responses, strict=True):
            produced = None if response is None else response.topics[0].partitions[0]
            if produced is not None and produced.error_code == 0:
                for number in range(batch.records):
                    self.acknowledged[batch.first + number] = produced.base_offset + number
                continue
            if produced is not None:
                self._check_is_retriable(Error(produced.error_code), follows_a_failed_batch=bool(unacknowledged))
            unacknowledged.append(batch)
        if unacknowledged:
            await asyncio.sleep(RETRY_SECONDS)
        return unacknowledged

    def _check_is_retriable(self, error: Error, *, follows_a_failed_batch: bool) -> None:
        self.refused += 1
        is_expected = error.retriable or (follows_a_failed_batch and error is Error.OUT_OF_ORDER_SEQUENCE_NUMBER)
        if not is_expected:
            raise AssertionError(f"{self.name}: the broker refused a batch with {error.name}, which is not retriable")
