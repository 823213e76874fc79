"""A broker with a Kafka door and a DMQP door inside the test's own event loop, and clients that speak raw DMQP."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from tailrace.broker.node import Node
from tailrace.broker.starting import start_broker
from tailrace.client.cluster import Cluster
from tailrace.doors.dmqp import DmqpDoor
from tailrace.doors.dmqp.codec import HEADER_BYTES, Codec, Header, Method, Status
from tailrace.doors.door import open_doors
from tailrace.doors.in_broker import BrokerHost
from tailrace.doors.kafka import KafkaDoor
from tailrace.doors.upstream import Upstream
from tailrace.model.settings import Settings
from tailrace.ports import system_ports
from tests.unit.doors.kafka.served import given

ANSWER_MAX_S: Final = 20.0


class Answer(NamedTuple):
    status: Status
    payload: bytes
    timestamp: int
    topic_id: int


class Client:
    """A client that may violate the protocol."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, codec: Codec) -> None:
        self.reader = reader
        self.writer = writer
        self.codec = codec

    def send(self, method: int, topic_id: int = 0, payload: bytes = b"", *, length: int | None = None) -> None:
        told = len(payload) if length is None else length
        self.writer.write(self.codec.encoded(Header(0, told, method, topic_id, 0)) + payload)

    async def answer(self) -> Answer:
        async with asyncio.timeout(ANSWER_MAX_S):
            header = self.codec.header(await self.reader.readexactly(HEADER_BYTES))
            payload = await self.reader.readexactly(header.length)
        assert header.method == Method.RESPONSE
        return Answer(Status(header.status), payload, header.timestamp, header.topic_id)

    async def call(self, method: int, topic_id: int = 0, payload: bytes = b"") -> Answer:
        self.send(method, topic_id, payload)
        return await self.answer()

    async def push(self, payload: bytes, topic_id: int = 0) -> None:
        answer = await self.call(Method.PUSH, topic_id, payload)
        assert answer.status is Status.OK, answer

    async def pop(self, topic_id: int = 0) -> bytes | None:
        """The payload; None if the topic is empty."""
        answer = await self.call(Method.POP, topic_id)
        assert answer.status in (Status.OK, Status.ENODATA), answer
        return answer.payload if answer.status is Status.OK else None

    async def is_closed(self) -> bool:
        """Whether the server closes the connection, and sends nothing more."""
        async with asyncio.timeout(ANSWER_MAX_S):
            try:
                return await self.reader.read() == b""
            except ConnectionError:
                return True

    def close(self) -> None:
        self.writer.close()


class Served:
    def __init__(self, node: Node, door: DmqpDoor, upstream: Upstream) -> None:
        self.node = node
        self.door = door
        self.upstream = upstream
        self._clients: list[Client] = []

    @property
    def cluster(self) -> Cluster:
        return self.upstream.cluster

    async def client(self, **options: Any) -> Client:
        streams = await asyncio.open_connection("127.0.0.1", self.door.port, **options)
        client = Client(*streams, self.door.codec)
        self._clients.append(client)
        return client

    def close_clients(self) -> None:
        for client in self._clients:
            client.close()


@asynccontextmanager
async def serving(folder: Path, **settings: Any) -> AsyncIterator[Served]:
    chosen = {
        "data_dir": str(folder),
        "kafka_port": 0,
        "dmqp_port": 0,
        "dmqp_security_protocol": "PLAINTEXT",
        "fsync": "never",
        **settings,
    }
    node = await start_broker(system_ports(), Settings(**chosen))
    host = BrokerHost(node, lambda: None)
    kafka, door = KafkaDoor(node), DmqpDoor(host)
    await open_doors(node, [kafka, door])
    served = Served(node, door, host.upstream)
    try:
        yield served
    finally:
        served.close_clients()
        door.close()
        await host.upstream.close()
        kafka.close()
        await node.stop()


def with_door(**settings: Any) -> Callable[[Callable[[Served], Awaitable[None]]], Callable[[Path], None]]:
    """A test that gets a fresh broker with a DMQP door."""
    return given(lambda folder: serving(folder, **settings))
