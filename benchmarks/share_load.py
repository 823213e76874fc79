"""A process of workers that take messages of a share group and accept them, or of one consumer that only reads.

Every run has a group of its own, which begins at the start of a topic that was filled before. The clock starts when all
workers have joined. A message counts when its worker has gone on to the next one, so with its acknowledgement sent.

- client: `ShareConsumer` of our client for batches, accepted by the next poll; `Queue` for one message at a time;
- wire: ShareFetch requests, each with the acknowledgements of the one before. This measures the broker;
- librdkafka: one ShareConsumer of confluent-kafka with implicit acknowledgement.
"""

import asyncio
import json
import sys
import time
import uuid
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

import confluent_kafka

from benchmarks.batches import random_batch
from benchmarks.connection import Refused
from benchmarks.processes import Server, cpu_seconds, measure
from benchmarks.share_workers import ClientWorker, QueueWorker, Tally, WireWorker, Worker
from tailrace.client.admin import change_group_settings
from tailrace.client.asyncio_driver import AsyncioDriver
from tailrace.client.cluster import Cluster
from tailrace.client.connection import Connection
from tailrace.client.consumer import Consumer
from tailrace.model.addresses import Address
from tailrace.model.ids import PartitionName
from tailrace.ports import system_ports
from tailrace.wire.messages.produce import PartitionToProduce, ProduceRequest, TopicToProduce

Kind = Literal["fill", "client", "wire", "librdkafka", "read-client", "read-librdkafka"]
BATCH_RECORDS: Final = 500  # as many as a poll asks for by default
IN_FLIGHT: Final = 5  # batches of 500
JOIN_MAX_S: Final = 60.0
POLL_S: Final = 1.0
TIMEOUT_MS: Final = 60_000
PRODUCE_VERSION: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareWork:
    kind: Kind
    host: str
    port: int
    pid: int
    topic: str
    messages: int  # to take at most; a topic must be filled with some more
    seconds: float = 60.0  # at most
    workers: int = 1
    one_by_one: bool = False
    value_bytes: int = 100

    @property
    def bootstrap(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareRun:
    """The work done, and the time and CPU it took."""

    messages: int
    seconds: float
    cpu_seconds: float  # of the server

    @property
    def per_second(self) -> float:
        return self.messages / self.seconds

    @property
    def cpu_microseconds(self) -> float:
        """Per message."""
        return self.cpu_seconds / self.messages * 1_000_000


class Stopwatch:
    """Reads the clock and the server's CPU time at the start and at the end."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._computed, self._began = cpu_seconds(pid), time.perf_counter()

    def stopped(self, messages: int) -> ShareRun:
        seconds = time.perf_counter() - self._began
        return ShareRun(messages=messages, seconds=seconds, cpu_seconds=cpu_seconds(self._pid) - self._computed)


def new_cluster(work: ShareWork) -> Cluster:
    ports = system_ports()
    return Cluster(AsyncioDriver(ports.net, ports.clock, ports.random), [Address(work.host, work.port)])


async def new_group(work: ShareWork) -> str:
    """A group that begins at the start of the topic."""
    group = f"{work.topic}-{uuid.uuid4().hex[:8]}"
    cluster = new_cluster(work)
    await change_group_settings(cluster, group, {"share.auto.offset.reset": "earliest"})
    cluster.close()
    return group


async def fill(work: ShareWork) -> ShareRun:
    """Produce batches of 500 messages, or of one; the same bytes again and again."""
    client = await Connection.connect(system_ports().net, work.host, work.port, "bench")
    records = 1 if work.one_by_one else BATCH_RECORDS
    batch = random_batch(records=records, value_bytes=work.value_bytes)
    one = TopicToProduce(name=work.topic, partitions=(PartitionToProduce(partition=0, records=batch),))
    request = ProduceRequest(acks=-1, timeout_ms=TIMEOUT_MS, topics=(one,))
    watch = Stopwatch(work.pid)
    in_flight = IN_FLIGHT * BATCH_RECORDS // records
    for _ in range(work.messages // records // in_flight):
        for answer in await asyncio.gather(*(client.send(request, PRODUCE_VERSION) for _ in range(in_flight))):
            if error := answer.topics[0].partitions[0].error_code:
                raise Refused(f"filling {work.topic}: error {error}")
    return watch.stopped(work.messages)


async def take(work: ShareWork) -> ShareRun:
    group, tally = await new_group(work), Tally(work.messages)
    async with AsyncExitStack() as stack:
        workers = [await stack.enter_async_context(new_worker(work, group)) for _ in range(work.workers)]
        async with asyncio.timeout(JOIN_MAX_S):
            await asyncio.gather(*(one.join() for one in workers))
        watch = Stopwatch(work.pid)
        return await until_enough(work, [asyncio.create_task(one.run(tally)) for one in workers], tally, watch)


def new_worker(work: ShareWork, group: str) -> Worker:
    if work.kind == "wire":
        return WireWorker(work.host, work.port, work.topic, group, one_by_one=work.one_by_one)
    if work.one_by_one:
        return QueueWorker(work.bootstrap, work.topic, group)
    return ClientWorker(new_cluster(work), work.topic, group)


async def until_enough(
    work: ShareWork, tasks: Sequence["asyncio.Task[None]"], tally: Tally, watch: Stopwatch
) -> ShareRun:
    ended = asyncio.create_task(tally.enough.wait())
    await asyncio.wait([ended, *tasks], timeout=work.seconds, return_when=asyncio.FIRST_COMPLETED)
    run = watch.stopped(tally.accepted)
    for task in (ended, *tasks):
        task.cancel()
    for outcome in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(outcome, Exception):
            raise outcome
    if not run.messages:
        raise Refused(f"no message of {work.topic} was taken in {run.seconds:.1f} s")
    return run


async def read(work: ShareWork) -> ShareRun:
    """The same messages, with the plain consumer of our client."""
    cluster = new_cluster(work)
    async with Consumer(cluster) as consumer:
        consumer.assign({PartitionName(work.topic, 0): 0})
        await consumer.poll()
        watch, read = Stopwatch(work.pid), 0
        while read < work.messages:
            read += len(await consumer.poll())
        run = watch.stopped(read)
    cluster.close()
    return run


def take_through_librdkafka(work: ShareWork) -> ShareRun:
    group = asyncio.run(new_group(work))
    with confluent_kafka.ShareConsumer({"bootstrap.servers": work.bootstrap, "group.id": group}) as consumer:
        consumer.subscribe([work.topic])
        deadline = time.monotonic() + JOIN_MAX_S
        while not consumer.poll(POLL_S):
            if time.monotonic() > deadline:
                raise Refused(f"confluent-kafka's ShareConsumer got nothing in {JOIN_MAX_S:g} s")
        watch, taken, until = Stopwatch(work.pid), 0, time.monotonic() + work.seconds
        while taken < work.messages and time.monotonic() < until:
            taken += len(consumer.poll(POLL_S))
        consumer.commit_sync()
        return watch.stopped(taken)


def read_through_librdkafka(work: ShareWork) -> ShareRun:
    settings = {"bootstrap.servers": work.bootstrap, "group.id": "unused", "enable.auto.commit": False}
    consumer = confluent_kafka.Consumer(settings)
    consumer.assign([confluent_kafka.TopicPartition(work.topic, 0, 0)])
    while not consumer.consume(BATCH_RECORDS, POLL_S):
        pass
    watch, read = Stopwatch(work.pid), 0
    while read < work.messages:
        read += len(consumer.consume(min(BATCH_RECORDS, work.messages - read), POLL_S))
    run = watch.stopped(read)
    consumer.close()
    return run


def perform(work: ShareWork) -> ShareRun:
    match work.kind:
        case "fill":
            return asyncio.run(fill(work))
        case "client" | "wire":
            return asyncio.run(take(work))
        case "librdkafka":
            return take_through_librdkafka(work)
        case "read-client":
            return asyncio.run(read(work))
        case "read-librdkafka":
            return read_through_librdkafka(work)


def measured(server: Server, kind: Kind, topic: str, messages: int, **options: Any) -> ShareRun:
    """In a process of its own."""
    host, port, pid = server.host, server.port, server.pid
    work = ShareWork(kind=kind, host=host, port=port, pid=pid, topic=topic, messages=messages, **options)
    return ShareRun(**measure("benchmarks.share_load", work))


if __name__ == "__main__":
    work_fields: dict[str, Any] = json.loads(sys.argv[1])
    print(json.dumps(asdict(perform(ShareWork(**work_fields)))))
