"""Too much of everything, against a real process whose memory and sockets are counted; a client beside notices nothing.

The bounds are generous for what a broker needs and far below what the clients here ask for.
"""

import asyncio
import resource
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Final

import pytest

from tailrace.client.connection import Connection
from tailrace.ports import system_ports
from tailrace.records.build import build_batch
from tailrace.records.record import NewRecord
from tailrace.testing import Broker
from tailrace.wire.errors import Error
from tailrace.wire.messages.create_partitions import CreatePartitionsRequest, TopicToGrow
from tailrace.wire.messages.create_topics import CreateTopicsRequest, NewTopic
from tailrace.wire.messages.delete_topics import DeleteTopicsRequest, TopicToDelete
from tailrace.wire.messages.fetch import FetchRequest, PartitionToFetch, TopicToFetch
from tailrace.wire.messages.metadata import MetadataRequest
from tailrace.wire.messages.produce import PartitionToProduce, ProduceRequest, TopicToProduce
from tests.fuzz import control
from tests.fuzz.control import Control
from tests.fuzz.target import failures_in, resident_bytes, sockets, until_sockets
from tests.unit.doors.kafka.hostile import Raw, framed, until

MiB: Final = 1024 * 1024
GROWTH_MAX_BYTES: Final = 48 * MiB
TEN_THOUSAND_PARTITIONS_MAX_BYTES: Final = 112 * MiB


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(fsync="never") as broker:
        asyncio.run(_prepare(broker))
        yield broker
        assert failures_in(broker.log) == []


async def _prepare(broker: Broker) -> None:
    client = await Control.connect(broker.port)
    await client.make_topics([control.TOPIC, "big"], 1)
    client.close()


@asynccontextmanager
async def unnoticed(broker: Broker, growth_max_bytes: int = GROWTH_MAX_BYTES) -> AsyncIterator[Control]:
    """Meanwhile a client beside is answered in time, memory stays bounded, and no socket is left afterwards."""
    client = await Control.connect(broker.port)
    await client.find_end()
    await client.round_trip()
    before, memory = sockets(broker.pid), resident_bytes(broker.pid)
    beside = asyncio.create_task(client.run())
    try:
        yield client
    finally:
        client.stopping = True
        await beside
    assert resident_bytes(broker.pid) - memory < growth_max_bytes
    await until_sockets(broker.pid, before)
    client.close()


def against(
    broker: Broker, attack: Callable[[Control], Awaitable[None]], growth_max_bytes: int = GROWTH_MAX_BYTES
) -> None:
    async def run() -> None:
        async with unnoticed(broker, growth_max_bytes) as beside:
            await attack(beside)

    asyncio.run(run())


def test_claimed_lengths_cost_no_memory(broker: Broker) -> None:
    """A hundred clients each announce a hundred megabytes and send a few bytes of them."""

    async def attack(beside: Control) -> None:
        clients = [await Raw.connect(broker.port) for _ in range(100)]
        for client in clients:
            client.send(struct.pack(">i", 100 * MiB) + bytes(1000))
            await client.writer.drain()
        assert resident_bytes(broker.pid) < 150 * MiB
        for client in clients:
            client.close()

    against(broker, attack)


def test_a_client_that_never_reads_its_answers_fills_its_own_socket(broker: Broker) -> None:
    """Two thousand Fetch requests for four megabytes each, in one go: they would come to eight gigabytes."""

    async def attack(beside: Control) -> None:
        await _fill(broker, batches=4)
        part = PartitionToFetch(partition=0, fetch_offset=0, partition_max_bytes=50 * MiB)
        topics = (TopicToFetch(name="big", partitions=(part,)),)
        request = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=50 * MiB, topics=topics)
        client = await Raw.connect(broker.port)
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        client.send(framed(request, 12) * 2000)
        enough = beside.rounds + 15
        await until(lambda: beside.rounds >= enough)  # the time it has to do harm
        client.writer.transport.abort()

    against(broker, attack)


async def _fill(broker: Broker, batches: int) -> None:
    client = await Connection.connect(system_ports().net, "127.0.0.1", broker.port)
    batch = bytes(build_batch([NewRecord(value=bytes(MiB - 200))]))
    topics = (TopicToProduce(name="big", partitions=(PartitionToProduce(partition=0, records=batch),)),)
    for _ in range(batches):
        answer = await client.call(ProduceRequest(acks=-1, timeout_ms=5000, topics=topics), 9)
        assert answer.topics[0].partitions[0].error_code == 0
    client.close()


def test_two_thousand_connections_are_held_and_let_go(broker: Broker) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 8192), most))

    async def attack(beside: Control) -> None:
        clients = [await Raw.connect(broker.port) for _ in range(2000)]
        asked = framed(MetadataRequest(topics=()), 9)
        for client in clients:
            client.send(asked)
        for client in clients:
            assert await client.answer()
        for client in clients:
            client.close()

    against(broker, attack)


def test_a_hundred_slow_clients_hold_up_nobody(broker: Broker) -> None:
    """Each sends a request byte by byte."""

    async def attack(beside: Control) -> None:
        clients = [await Raw.connect(broker.port) for _ in range(100)]
        for byte in framed(MetadataRequest(topics=()), 9):
            for client in clients:
                client.send(bytes([byte]))
            await asyncio.sleep(0)
        for client in clients:
            assert await client.answer()
            client.close()

    against(broker, attack)


def test_ten_thousand_partitions_are_granted_and_more_are_refused(broker: Broker) -> None:
    """As many as Kafka grants in one request; they cost some 8 KiB each, and go again with their topic."""

    async def attack(beside: Control) -> None:
        client = await Connection.connect(system_ports().net, "127.0.0.1", broker.port)
        for count in (10_001, 2**31 - 1):
            assert await _create(client, ("one", count)) == [Error.POLICY_VIOLATION]
        assert await _create(client, ("one", 6_000), ("two", 6_000)) == [Error.POLICY_VIOLATION] * 2
        assert await _create(client, ("one", 10_000)) == [Error.NONE]
        grown = CreatePartitionsRequest(topics=(TopicToGrow(name="one", count=10_001),), timeout_ms=1000)
        assert (await client.call(grown, 3)).results[0].error_code == Error.INVALID_PARTITIONS
        gone = DeleteTopicsRequest(topics=(TopicToDelete(name="one"),), timeout_ms=1000)
        assert (await client.call(gone, 6)).topics[0].error_code == 0
        client.close()

    against(broker, attack, TEN_THOUSAND_PARTITIONS_MAX_BYTES)


async def _create(client: Connection, *wanted: tuple[str, int]) -> list[Error]:
    topics = tuple(NewTopic(name=name, num_partitions=count, replication_factor=1) for name, count in wanted)
    answer = await client.call(CreateTopicsRequest(topics=topics, timeout_ms=1000), 7)
    return [Error(one.error_code) for one in answer.topics]


def test_a_request_full_of_repeated_names_is_answered_at_once(broker: Broker) -> None:
    """Ten thousand names, each twice: comparing each with each would take minutes."""

    async def attack(beside: Control) -> None:
        client = await Connection.connect(system_ports().net, "127.0.0.1", broker.port)
        names = [f"n_{number}" for number in range(10_000)] * 2
        async with asyncio.timeout(20):
            assert set(await _create(client, *((name, 1) for name in names))) == {Error.INVALID_REQUEST}
        client.close()

    against(broker, attack)
