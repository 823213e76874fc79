"""A small client door for tests of what doors stand on: one line of text in, one record out, one line of answer.

orders two coffees          ->  0 (the offset)
"""

import asyncio
from typing import Final

from tailrace.client.faults import ClientError
from tailrace.doors.door import CannotListen, DoorCounters
from tailrace.doors.upstream import ClientHost
from tailrace.model.addresses import Address
from tailrace.model.caller import ANONYMOUS
from tailrace.model.listeners import HTTP_LISTENER
from tailrace.ports import Listener


class LineDoor:
    listener_name: Final = HTTP_LISTENER

    def __init__(self, host: ClientHost) -> None:
        self.host = host
        self.counters = DoorCounters()
        self.connections: dict[LineConnection, None] = {}
        self.opened = asyncio.Event()
        self.asked = asyncio.Event()
        self._listener: Listener | None = None

    @property
    def endpoint(self) -> Address:
        assert self._listener is not None
        return Address(self.host.advertised_host, self._listener.port)

    async def listen(self) -> None:
        settings = self.host.settings
        try:
            self._listener = await self.host.net(self.listener_name).listen(
                lambda: LineConnection(self), settings.host, settings.http_port
            )
        except OSError as error:
            raise CannotListen(self.listener_name, settings.host, settings.http_port, "--http-port", error) from None

    def open(self) -> None:
        self.opened.set()

    async def stop(self, grace_s: float) -> None:
        if self._listener is not None:
            self._listener.close()
        async with asyncio.timeout(grace_s):
            await asyncio.gather(*(task for one in self.connections for task in one.tasks))
        self.close()

    def close(self) -> None:
        if self._listener is not None:
            self._listener.close()
        for one in list(self.connections):
            one.transport.close()


class LineConnection(asyncio.Protocol):
    transport: asyncio.Transport

    def __init__(self, door: LineDoor) -> None:
        self._door = door
        self.tasks: dict[asyncio.Task[None], None] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._door.connections[self] = None
        self._door.counters.connections += 1
        self._door.counters.accepted += 1

    def connection_lost(self, exc: Exception | None) -> None:
        del self._door.connections[self]
        self._door.counters.connections -= 1

    def data_received(self, data: bytes) -> None:
        self._door.counters.received_bytes += len(data)
        self._door.asked.set()
        for line in data.splitlines():
            task = asyncio.get_running_loop().create_task(self._produce(line))
            self.tasks[task] = None
            task.add_done_callback(self.tasks.pop)

    async def _produce(self, line: bytes) -> None:
        door = self._door
        await door.opened.wait()
        topic, _, value = line.partition(b" ")
        try:
            with door.host.upstream.producers.of(ANONYMOUS) as producer:
                said = str((await (await producer.send(topic.decode(), value))).offset)
        except ClientError as error:
            door.counters.failed += 1
            said = f"error: {error}"
        door.counters.requests += 1
        answer = f"{said}\n".encode()
        door.counters.sent_bytes += len(answer)
        self.transport.write(answer)
