"""A process that runs transactions: many producers at once over the wire client, or one as people have it.

- wire: each producer has one transaction under way on a connection of its own, as KIP-890 has them: one Produce of one
  batch, whose partition joins by itself, and EndTxn, which brings the next epoch. What it costs is the broker's;
- librdkafka: one producer of confluent-kafka, one transaction after the other: begin, produce, commit. How long the
  library lets pass between its steps is part of it.
"""

import asyncio
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

import confluent_kafka

from benchmarks.batches import name_producer, random_batch
from benchmarks.connection import Refused
from benchmarks.processes import cpu_seconds
from tailrace.ports import system_ports
from tailrace.wire.client import WireClient
from tailrace.wire.messages.end_txn import EndTxnRequest
from tailrace.wire.messages.find_coordinator import FindCoordinatorRequest
from tailrace.wire.messages.init_producer_id import InitProducerIdRequest
from tailrace.wire.messages.produce import PartitionToProduce, ProduceRequest, TopicToProduce

Kind = Literal["wire", "librdkafka"]
TRANSACTIONAL_IDS: Final = 1  # the type of key that FindCoordinator is asked for
TIMEOUT_MS: Final = 60_000
INIT_MAX_S: Final = 30.0
AGAIN_S: Final = 0.02  # as the Java client waits before it asks once more for a first partition
CONCURRENT_TRANSACTIONS: Final = 51


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionWork:
    kind: Kind
    host: str
    port: int
    pid: int
    topic: str
    messages: int  # of a transaction
    value_bytes: int
    producers: int = 1
    transactions: int | None = None  # of all producers together; None: as many as the time allows
    seconds: float = 60.0
    abort_every: int = 0  # of a producer's transactions, one in so many; 0: none


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What was done, and what it took."""

    transactions: int
    seconds: float
    cpu_seconds: float  # of the server

    @property
    def per_second(self) -> float:
        return self.transactions / self.seconds


def may_go_on(work: TransactionWork) -> Callable[[int], bool]:
    """Whether a producer that has made so many may begin another."""
    until = time.monotonic() + work.seconds
    each = None if work.transactions is None else work.transactions // work.producers
    return lambda made: (each is None or made < each) and time.monotonic() < until


class WireProducer:
    """One transactional id."""

    def __init__(self, client: WireClient, work: TransactionWork, name: str) -> None:
        self._client = client
        self._work = work
        self._name = name
        self._batch = random_batch(records=work.messages, value_bytes=work.value_bytes, transactional=True)
        self._producer = (-1, -1)  # its id and epoch

    async def begin(self) -> None:
        """Ask until the coordinator is there, and has read its log."""
        request = InitProducerIdRequest(transactional_id=self._name, transaction_timeout_ms=TIMEOUT_MS)
        async with asyncio.timeout(INIT_MAX_S):
            while True:
                await self._client.call(FindCoordinatorRequest(key=self._name, key_type=TRANSACTIONAL_IDS), 2)
                answer = await self._client.call(request, 4)
                if answer.error_code == 0:
                    self._producer = answer.producer_id, answer.producer_epoch
                    return
                await asyncio.sleep(AGAIN_S)

    async def run(self, goes_on: Callable[[int], bool]) -> int:
        made = 0
        while goes_on(made):
            made += 1
            await self._produce()
            await self._end(committed=not self._work.abort_every or made % self._work.abort_every != 0)
        return made

    async def _produce(self) -> None:
        name_producer(self._batch, *self._producer, 0)  # every epoch counts from the beginning
        one = TopicToProduce(name=self._work.topic, partitions=(PartitionToProduce(partition=0, records=self._batch),))
        request = ProduceRequest(transactional_id=self._name, acks=-1, timeout_ms=TIMEOUT_MS, topics=(one,))
        await self._accepted(request, 12, lambda answer: answer.topics[0].partitions[0].error_code)

    async def _end(self, *, committed: bool) -> None:
        producer_id, epoch = self._producer
        request = EndTxnRequest(
            transactional_id=self._name, producer_id=producer_id, producer_epoch=epoch, committed=committed
        )
        answer = await self._accepted(request, 5, lambda answer: answer.error_code)
        self._producer = answer.producer_id, answer.producer_epoch

    async def _accepted(self, request: object, version: int, error_of: Callable[[Any], int]) -> Any:
        """Sent again while markers of the transaction before are still on their way."""
        while True:
            answer = await self._client.call(request, version)
            error = error_of(answer)
            if not error:
                return answer
            if error != CONCURRENT_TRANSACTIONS:
                raise Refused(f"{self._name}: {type(request).__name__} was answered with error {error}")
            await asyncio.sleep(AGAIN_S)


async def over_the_wire(work: TransactionWork) -> Run:
    net = system_ports().net
    producers = []
    for number in range(work.producers):
        client = await WireClient.connect(net, work.host, work.port, "bench")
        producers.append(WireProducer(client, work, f"{work.topic}-{number}"))
    await asyncio.gather(*(one.begin() for one in producers))
    goes_on = may_go_on(work)
    computed, began = cpu_seconds(work.pid), time.perf_counter()
    made = sum(await asyncio.gather(*(one.run(goes_on) for one in producers)))
    seconds = time.perf_counter() - began
    return Run(transactions=made, seconds=seconds, cpu_seconds=cpu_seconds(work.pid) - computed)


def through_librdkafka(work: TransactionWork) -> Run:
    settings = {
        "bootstrap.servers": f"{work.host}:{work.port}",
        "transactional.id": f"{work.topic}-librdkafka",
        "linger.ms": 0,
    }
    producer = confluent_kafka.Producer(settings)
    producer.init_transactions(INIT_MAX_S)
    value = bytes(work.value_bytes)
    goes_on, made = may_go_on(work), 0
    computed, began = cpu_seconds(work.pid), time.perf_counter()
    while goes_on(made):
        producer.begin_transaction()
        for _ in range(work.messages):
            producer.produce(work.topic, value, partition=0)
        producer.commit_transaction()
        made += 1
    seconds = time.perf_counter() - began
    return Run(transactions=made, seconds=seconds, cpu_seconds=cpu_seconds(work.pid) - computed)


def perform(work: TransactionWork) -> Run:
    return asyncio.run(over_the_wire(work)) if work.kind == "wire" else through_librdkafka(work)


if __name__ == "__main__":
    said: dict[str, Any] = json.loads(sys.argv[1])
    print(json.dumps(asdict(perform(TransactionWork(**said)))))
