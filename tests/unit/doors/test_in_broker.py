"""A client door in the process of a broker: its upstream, and how it opens and stops with the broker."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tailrace.broker.node import Node
from tailrace.broker.starting import start_broker
from tailrace.client.admin import create_topics
from tailrace.doors.client_doors import stop_doors
from tailrace.doors.door import CannotListen, open_doors
from tailrace.doors.in_broker import BrokerHost
from tailrace.doors.kafka import KafkaDoor
from tailrace.model.addresses import Address
from tailrace.model.caller import BROKER
from tailrace.model.ids import BrokerId
from tailrace.model.listeners import HTTP_LISTENER, KAFKA_LISTENER
from tailrace.model.settings import Settings
from tailrace.ports import system_ports
from tailrace.ports.memory import MemoryTransport
from tailrace.wire.messages.create_topics import NewTopic
from tests.unit.doors.kafka.served import given
from tests.unit.doors.line_door import LineDoor

DEADLINE_S = 10.0


class Serving:
    def __init__(self, node: Node, kafka: KafkaDoor, host: BrokerHost, door: LineDoor) -> None:
        self.node = node
        self.kafka = kafka
        self.host = host
        self.door = door

    async def make_topic(self, name: str) -> None:
        new = NewTopic(name=name, num_partitions=1, replication_factor=1)
        assert await create_topics(self.host.upstream.cluster, [new]) == {name: None}

    async def ask(self, line: str) -> str:
        reader, writer = await asyncio.open_connection(*self.door.endpoint)
        writer.write(f"{line}\n".encode())
        async with asyncio.timeout(DEADLINE_S):
            answer = await reader.readline()
        writer.close()
        return answer.decode().strip()


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[Serving]:
    settings = Settings(data_dir=str(folder), kafka_port=0, http_port=0, fsync="never")
    node = await start_broker(system_ports(), settings)
    host = BrokerHost(node, lambda: None)
    kafka, door = KafkaDoor(node), LineDoor(host)
    host.show([door])
    await open_doors(node, [kafka, door])
    try:
        yield Serving(node, kafka, host, door)
    finally:
        await stop_doors(host, [door])
        kafka.close()
        await node.stop()


@given(serving)
async def test_what_comes_in_by_a_client_door_is_in_the_log(broker: Serving) -> None:
    await broker.make_topic("orders")
    assert [await broker.ask("orders one"), await broker.ask("orders two")] == ["0", "1"]


@given(serving)
async def test_its_requests_go_through_memory(broker: Serving) -> None:
    await broker.make_topic("orders")
    transports = [one.transport for one in broker.kafka._connections]
    assert transports
    assert all(isinstance(one, MemoryTransport) for one in transports)


@given(serving)
async def test_a_topic_that_is_missing_is_not_created(broker: Serving) -> None:
    assert (await broker.ask("orders one")).startswith("error: ")
    assert not (await broker.host.upstream.cluster.refresh(None)).topics


@given(serving)
async def test_the_upstream_knows_where_the_doors_of_the_cluster_are(broker: Serving) -> None:
    upstream = broker.host.upstream
    assert upstream.broker_id == 1
    assert await upstream.endpoints(HTTP_LISTENER) == {BrokerId(1): broker.door.endpoint}
    assert await upstream.endpoints(KAFKA_LISTENER) == {BrokerId(1): broker.kafka.endpoint}
    assert await upstream.endpoints("grpc") == {}
    assert broker.node.endpoints[HTTP_LISTENER] == broker.door.endpoint


@given(serving)
async def test_a_door_that_stops_answers_what_was_asked_before(broker: Serving) -> None:
    await broker.make_topic("orders")
    reader, writer = await asyncio.open_connection(*broker.door.endpoint)
    writer.write(b"orders one\n")
    async with asyncio.timeout(DEADLINE_S):
        await broker.door.asked.wait()
        await stop_doors(broker.host, [broker.door])
        assert await reader.read() == b"0\n"
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(*broker.door.endpoint)
    writer.close()


def test_if_one_door_cannot_listen_none_stays_open(tmp_path: Path) -> None:
    async def run() -> None:
        other = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
        taken = other.sockets[0].getsockname()[1]
        settings = Settings(data_dir=str(tmp_path), kafka_port=0, http_port=taken, fsync="never")
        node = await start_broker(system_ports(), settings)
        kafka = KafkaDoor(node)
        with pytest.raises(CannotListen, match=rf"the http listener: port {taken} on 127.0.0.1 is in use.*\n.*--http"):
            await open_doors(node, [kafka, LineDoor(BrokerHost(node, lambda: None))])
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(*Address("127.0.0.1", kafka.port))
        await node.stop()
        other.close()

    asyncio.run(run())


@given(serving)
async def test_the_broker_shows_what_its_doors_have_done(broker: Serving) -> None:
    await broker.make_topic("orders")
    await broker.ask("orders one")
    await broker.ask("missing two")
    (fact,) = [one for one in broker.node.services.admin.settings_of(BROKER, 4, "1") if one.name == "door.http"]
    told = dict(one.split("=") for one in fact.values[0].value.split(","))
    assert told == {
        "endpoint": str(broker.door.endpoint),
        "connections": str(broker.door.counters.connections),
        "accepted": "2",
        "requests": "2",
        "failed": "1",
        "received_bytes": str(len("orders one\nmissing two\n")),
        "sent_bytes": str(broker.door.counters.sent_bytes),
    }
