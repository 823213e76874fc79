"""A broker in this process, and the services of the gRPC door on it, without gRPC."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tailrace.broker.starting import start_broker
from tailrace.client.admin import create_topics
from tailrace.doors.door import open_doors
from tailrace.doors.grpc.calls import Call
from tailrace.doors.grpc.schema import Schema, load_schema
from tailrace.doors.in_broker import BrokerHost
from tailrace.doors.kafka import KafkaDoor
from tailrace.doors.upstream import Upstream
from tailrace.model.caller import Caller
from tailrace.model.settings import Settings
from tailrace.ports import system_ports
from tailrace.wire.messages.create_topics import NewTopic

DEADLINE_S = 20.0
LOCAL = Call(caller=Caller(host="127.0.0.1", listener="grpc"))


class Served:
    def __init__(self, host: BrokerHost, stops: list[str]) -> None:
        self.upstream: Upstream = host.upstream
        self.schema: Schema = load_schema()
        self.stops = stops  # one for each time that the broker was asked to stop

    async def make_topic(self, name: str, partitions: int = 1) -> None:
        new = NewTopic(name=name, num_partitions=partitions, replication_factor=1)
        assert await create_topics(self.upstream.cluster, [new]) == {name: None}


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[Served]:
    stops: list[str] = []
    settings = Settings(data_dir=str(folder), kafka_port=0, fsync="never", group_consumer_heartbeat_interval_ms=100)
    node = await start_broker(system_ports(), settings)
    host = BrokerHost(node, lambda: stops.append("stop"))
    kafka = KafkaDoor(node)
    await open_doors(node, [kafka])
    try:
        async with asyncio.timeout(DEADLINE_S):
            yield Served(host, stops)
    finally:
        await host.upstream.close()
        kafka.close()
        await node.stop()


class Conversation:
    """A stream whose client is the test."""

    call = LOCAL

    def __init__(self, requests: Sequence[Any] = ()) -> None:
        self._requests: asyncio.Queue[Any | None] = asyncio.Queue()
        for one in requests:
            self.send(one)
        self._responses: asyncio.Queue[Any] = asyncio.Queue()
        self.may_read = asyncio.Event()  # cleared: the client does not read, so a write waits
        self.may_read.set()

    def send(self, request: Any) -> None:
        self._requests.put_nowait(request)

    def end(self) -> None:
        self._requests.put_nowait(None)

    async def received(self) -> Any:
        return await self._responses.get()

    @property
    def waiting(self) -> int:
        return self._responses.qsize()

    # What the service sees

    async def read(self) -> Any | None:
        return await self._requests.get()

    async def write(self, response: Any) -> None:
        await self.may_read.wait()
        self._responses.put_nowait(response)
