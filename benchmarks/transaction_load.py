"""A process that runs transactions: many producers at once with the wire client, or one with confluent-kafka.

- wire: each producer has one transaction open on its own connection, by KIP-890: one Produce of one batch, which adds
  its partition to the transaction, and EndTxn, which returns the next epoch. This measures the broker;
- librdkafka: one producer of confluent-kafka, one transaction after the other: begin, produce, commit. The library's
  own pauses between these steps are included.
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
from tailrace.client.connection import Connection
from tailrace.ports import system_ports
from tailrace.wire.messages.end_txn import EndTxnRequest
from tailrace.wire.messages.find_coordinator import FindCoordinatorRequest
from tailrace.wire.messages.init_producer_id import InitProducerIdRequest
from tailrace.wire.messages.produce import PartitionToProduce, ProduceRequest, TopicToProduce

Kind = Literal["wire", "librdkafka"]
TRANSACTIONAL_IDS: Final = 1  # the key type in FindCoordinator
TIMEOUT_MS: Final = 60_000
INIT_MAX_S: Final = 30.0
AGAIN_S: Final = 0.02  # the Java client's retry pause when it adds the first partition
CONCURRENT_TRANSACTIONS: Final = 51


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionWork:
    kind: Kind
    host: str
    port: int
    pid: int
    topic: str
    messages: int  # per transaction
    value_bytes: int
    producers: int = 1
    transactions: int | None = None  # of all producers in total; None: as many as fit into `seconds`
    seconds: float = 60.0
    abort_every: int = 0  # every n-th transaction of a producer is aborted; 0: none


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The work done, and the time and CPU it took."""

    transactions: int
    seconds: float
    cpu_seconds: float  # of the server

    @property
    def per_second(self) -> float:
        return self.transactions / self.seconds


def may_go_on(work: TransactionWork) -> Callable[[int], bool]:
    """Whether a producer that has run that many transactions may begin another."""
    until = time.monotonic() + work.seconds
    each = None if work.transactions is None else work.transactions // work.producers
    return lambda made: (each is None or made < each) and time.monotonic() < until


class WireProducer:
    """A producer with one transactional id."""

    def __init__(self, client: Connection, work: TransactionWork, name: str) -> None:
        self._client = client
        self._work = work
        self._name = name
        self._batch = random_batch(records=work.messages, value_bytes=work.value_bytes, transactional=True)
        self._producer = (-1, -1)  # producer id and epoch

    async def begin(self) -> None:
        """Send InitProducerId until the coordinator is available and loaded."""
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
        name_producer(self._batch, *self._producer, 0)  # sequences start at 0 in every epoch
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
        """The response; retried while the markers of the previous transaction are still being written."""
        while True:
            answer = await self._client.call(request, version)
            error = error_of(answer)
            if not error:
                return answer
            if error != CONCURRENT_TRANSACTIONS:
                raise Refused(f"{self._name}: {type(request).__name__} failed with error {error}")
            await asyncio.sleep(AGAIN_S)


async def over_the_wire(work: TransactionWork) -> Run:
    net = system_ports().net
    producers = []
    for number in range(work.producers):
        client = await Connection.connect(net, work.host, work.port, "bench")
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
    work_fields: dict[str, Any] = json.loads(sys.argv[1])
    print(json.dumps(asdict(perform(TransactionWork(**work_fields)))))
