"""Our own client (`tailrace.client`) in the cluster: a producer and a consumer, as doors use them.

The producer numbers its records. The consumer reads the partition while brokers fail, and must find every number at
most once and in order: each acknowledged record at the offset that the producer was told, and no record that failed,
except those of which the producer was told that they may be written.
"""

import asyncio
from contextlib import suppress
from typing import Final

from tailrace.client.asyncio_driver import AsyncioDriver
from tailrace.client.batching import BatchLimits
from tailrace.client.cluster import Cluster, Limits
from tailrace.client.consumer import Consumer, ConsumerOptions
from tailrace.client.faults import ClientError, Unavailable
from tailrace.client.offsets import LATEST, offsets_at
from tailrace.client.producer import NotWritten, Producer, ProducerOptions, Written
from tailrace.model.addresses import Address
from tailrace.model.ids import PartitionName
from tailrace.testing.scenarios.cluster.clients.router import Router
from tailrace.testing.scenarios.cluster.invariants.invariants import Invariant, InvariantViolated
from tailrace.testing.scenarios.reconnecting_client import PORT

SENT_AT_ONCE_MAX: Final = 5
REST_MAX_SECONDS: Final = 0.6
LIMITS: Final = Limits(request_s=3.0, retry_s=20.0)
PRODUCER_OPTIONS: Final = ProducerOptions(timeout_ms=2000, limits=BatchLimits(batch_bytes=200, delivery_s=20.0))


class ClientWorkload:
    def __init__(self, router: Router, topic: str, partition: int) -> None:
        self.name = router.name
        self._router = router
        self._rng = router.rng
        self._partition = PartitionName(topic, partition)
        self._sent = 0
        self._written: dict[int, int] = {}  # numbers that were acknowledged, and their offsets
        self._uncertain: dict[int, None] = {}  # numbers that may be written
        self._read: list[tuple[int, int]] = []  # number and offset
        self.has_written = False
        self.done = False
        self.stopping = False

    @property
    def acknowledged(self) -> int:
        return len(self._written)

    def _cluster(self) -> Cluster:
        ports = self._router.ports
        driver = AsyncioDriver(ports.net, ports.clock, ports.random, self.name)
        return Cluster(driver, [Address(host, PORT) for host in self._router.hosts()], LIMITS)

    async def run(self) -> None:
        writing = asyncio.ensure_future(self._write())
        await self._consume()
        await writing
        self._check()
        self.done = True

    async def _write(self) -> None:
        cluster = self._cluster()
        producer = Producer(cluster, PRODUCER_OPTIONS)
        while not self.stopping:
            count = self._rng.randrange(1, SENT_AT_ONCE_MAX)
            sent = [await self._send(producer) for _ in range(count)]
            for number, written in sent:
                await self._take(number, written)
            await asyncio.sleep(self._rng.random() * REST_MAX_SECONDS)
        await producer.close()
        cluster.close()
        self.has_written = True

    async def _send(self, producer: Producer) -> "tuple[int, asyncio.Future[Written]]":
        number, self._sent = self._sent, self._sent + 1
        value = f"{self.name} {number}".encode()
        return number, await producer.send(self._partition.topic, value, partition=self._partition.partition)

    async def _take(self, number: int, written: "asyncio.Future[Written]") -> None:
        try:
            self._written[number] = (await written).offset
        except NotWritten as failure:
            if failure.may_be_written:
                self._uncertain[number] = None

    async def _consume(self) -> None:
        """Read until the producer has finished and the end of the partition is reached."""
        cluster = self._cluster()
        end = None
        async with Consumer(cluster, ConsumerOptions(reads_committed=False, reset="earliest")) as consumer:
            consumer.assign({self._partition: 0})
            while end is None or consumer.positions[self._partition] < end:
                self._take_records(await self._poll(consumer))
                if end is None and self.has_written:
                    with suppress(Unavailable):
                        end = (await offsets_at(cluster, {self._partition: LATEST}))[self._partition]
        cluster.close()

    async def _poll(self, consumer: Consumer) -> list[tuple[int, bytes]]:
        try:
            return [(one.offset, one.value or b"") for one in await consumer.poll(max_records=50, timeout_s=0.5)]
        except Unavailable:
            return []
        except ClientError as error:
            raise InvariantViolated(Invariant.ALIVE, f"{self.name} cannot go on reading: {error}") from error

    def _take_records(self, records: list[tuple[int, bytes]]) -> None:
        prefix = f"{self.name} ".encode()
        self._read += [(int(value.removeprefix(prefix)), at) for at, value in records if value.startswith(prefix)]

    def _check(self) -> None:
        numbers = [number for number, _ in self._read]
        if numbers != sorted(dict.fromkeys(numbers)):
            raise InvariantViolated(Invariant.NO_DUPLICATES, f"{self.name} reads {numbers}, not each once and in order")
        offsets = dict(self._read)
        for number, offset in self._written.items():
            if number not in offsets or offset not in (-1, offsets[number]):
                found = offsets.get(number, "nowhere")
                raise InvariantViolated(
                    Invariant.NOTHING_LOST, f"{self.name}: record {number} was written at {offset}, and is read {found}"
                )
        for number in numbers:
            if number not in self._written and number not in self._uncertain:
                raise InvariantViolated(Invariant.ONE_VALUE, f"{self.name}: record {number} was refused, and is read")
