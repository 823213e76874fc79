"""A client that remembers what it was promised.

It sends numbered records, idempotent and acks=all, up to four batches one behind the other, and sends those that were
not acknowledged again, with the same sequences, until they are: over new connections, through restarts of the broker.
What was acknowledged, and at which offset, is its memory; `history` is checked against it.
"""

import asyncio
import random
from dataclasses import dataclass, field
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
COMPRESSIONS_TRIED: Final[list[Compression]] = ["none", "none", "none", "none", "zstd", "lz4"]


@dataclass(slots=True)
class Promises:
    """What a producer has sent, and what it was told."""

    sent: int = 0  # records 0 … sent - 1 were handed to the broker at least once
    acknowledged: dict[int, int] = field(default_factory=dict)  # record number -> offset
    refused: int = 0  # answers that told to try again


class UnacknowledgedBatch(NamedTuple):
    first: int
    records: int
    request: ProduceRequest


class CheckedProducer:
    def __init__(self, ports: Ports, rng: random.Random, name: str, broker: str, topic: str, partition: int) -> None:
        self.name = name
        self.topic = topic
        self.partition = partition
        self.promises = Promises()
        self.stopping = False
        self.producer_id = -1
        self._ports = ports
        self._rng = rng
        self._caller = ReconnectingClient(ports, name, broker)

    async def run(self) -> None:
        self.producer_id = await self._take_producer_id()
        while not self.stopping:
            # the first goes alone: of a producer that it does not know, a broker takes any sequence, as Kafka does
            size = self._rng.choice([1, 1, 2, 4]) if self.promises.acknowledged else 1
            window = [self._next() for _ in range(size)]
            while window:
                window = await self._send(window)
            if self._rng.random() < 0.2:
                await asyncio.sleep(self._rng.random() * 0.05)

    def _next(self) -> UnacknowledgedBatch:
        first, count = self.promises.sent, self._rng.randrange(1, 6)
        self.promises.sent += count
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
                compression=self._rng.choice(COMPRESSIONS_TRIED),
                producer_id=self.producer_id,
                producer_epoch=0,
                base_sequence=first,
            )
        )

    async def _take_producer_id(self) -> int:
        while True:
            request = InitProducerIdRequest(transaction_timeout_ms=0)
            answer: InitProducerIdResponse = await self._caller.insist(request, 1)
            if answer.error_code == 0:
                return answer.producer_id
            await asyncio.sleep(RETRY_SECONDS)

    async def _send(self, window: list[UnacknowledgedBatch]) -> list[UnacknowledgedBatch]:
        """One attempt for all of them; what is left to be sent again, in order."""
        answers: list[ProduceResponse | None] = await self._caller.call_each(
            [one.request for one in window], PRODUCE_VERSION
        )
        left: list[UnacknowledgedBatch] = []
        for one, response in zip(window, answers, strict=True):
            answer = None if response is None else response.topics[0].partitions[0]
            if answer is not None and answer.error_code == 0:
                for number in range(one.records):
                    self.promises.acknowledged[one.first + number] = answer.base_offset + number
                continue
            if answer is not None:
                self._check_may_retry(Error(answer.error_code), behind_another=bool(left))
            left.append(one)
        if left:
            await asyncio.sleep(RETRY_SECONDS)
        return left

    def _check_may_retry(self, error: Error, *, behind_another: bool) -> None:
        self.promises.refused += 1
        expected = error.retriable or (behind_another and error is Error.OUT_OF_ORDER_SEQUENCE_NUMBER)
        if not expected:
            raise AssertionError(f"{self.name}: the broker refused a batch: {error.name}")
