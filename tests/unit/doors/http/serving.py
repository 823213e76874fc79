"""An HTTP server in the simulator, and clients that speak to it in raw bytes; answers are read by h11."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

import h11

from tailrace.doors.http.errors import Problem
from tailrace.doors.http.messages import Request, Response, json_response
from tailrace.doors.http.origins import origins_of
from tailrace.doors.http.routes import Api, Route, Router
from tailrace.doors.http.server import HttpOptions, HttpServer
from tailrace.testing.simulation import World

PORT = 8001
GET = b"GET /echo HTTP/1.1\r\nHost: s\r\n\r\n"


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


class Raw(asyncio.Protocol):
    """A connection that sends what it is told, and keeps what comes."""

    def __init__(self) -> None:
        self.received = bytearray()
        self.closed = False  # the server has closed its side
        self.paused = False
        self._changed = asyncio.Event()
        self.transport: Any = None
        self._read = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.received += data
        self._changed.set()

    def eof_received(self) -> bool:
        self.closed = True
        self._changed.set()
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self.closed = True
        self._changed.set()

    def send(self, data: bytes) -> None:
        self.transport.write(data)

    async def until(self, condition: Callable[[], bool], seconds: float = 300.0) -> None:
        async with asyncio.timeout(seconds):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    async def until_closed(self) -> None:
        await self.until(lambda: self.closed)

    async def answer(self, method: str = "GET") -> Answer:
        """The next complete answer, read as a strict client would."""
        parser = h11.Connection(h11.CLIENT)
        parser.send(h11.Request(method=method, target="/", headers=[("Host", "s")]))
        parser.send(h11.EndOfMessage())
        head: Any = None
        body = b""
        while True:
            event: Any = parser.next_event()
            if event is h11.NEED_DATA:
                await self.until(lambda: self._read < len(self.received) or self.closed)
                data = bytes(self.received[self._read :])
                assert data or not parser.trailing_data[1], "the server closed the connection within an answer"
                self._read = len(self.received)
                parser.receive_data(data)
            elif isinstance(event, h11.Response):
                head = event
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                self._read -= len(parser.trailing_data[0])
                headers = {name.decode(): value.decode() for name, value in head.headers}
                return Answer(head.status_code, headers, body)

    async def ask(self, data: bytes, method: str = "GET") -> Answer:
        self.send(data)
        return await self.answer(method)


async def echo(request: Request) -> Response:
    return json_response({
        "method": request.method,
        "path": request.path,
        "parameters": dict(request.parameters),
        "query": dict(request.query),
        "body": request.body.decode("latin-1"),
    })  # fmt: skip


def route(method: str, path: str, handler: Any = echo, **options: Any) -> Route:
    return Route(method=method, path=path, handler=handler, name=path, help="", **options)


def failure(problem: Problem) -> Response:
    return json_response({"status": "failure", "message": problem.detail}, status=problem.status)


ECHO = (route("GET", "/echo"), route("POST", "/echo"), route("POST", "/small", body_max_bytes=10))


class Serving:
    """A server on machine `s`, and clients on machine `c`."""

    def __init__(self, world: World, routes: Sequence[Route], **options: Any) -> None:
        ports = world.machine("s").boot()
        router = Router([Api(prefix="", routes=routes, render=failure)])
        self.server = HttpServer(ports.net, ports.clock, router, HttpOptions(host="s", port=PORT, **options))
        self._world = world
        self._client = world.machine("c").boot()

    async def begin(self) -> None:
        machine = self._world.machine("s")
        await machine.run(self.server.listen())
        machine.spawn(self.server.sweep())
        self.server.open()

    async def connect(self) -> Raw:
        return await self._world.machine("c").run(self._client.net.connect(Raw, "s", PORT))

    async def ask(self, data: bytes, method: str = "GET") -> Answer:
        """One request on a connection of its own."""
        return await (await self.connect()).ask(data, method)


def serve(
    scenario: Callable[[Serving], Awaitable[None]], routes: Sequence[Route] = ECHO, *, seed: int = 1, **options: Any
) -> None:
    with World(seed) as world:
        serving = Serving(world, routes, **options)

        async def main() -> None:
            await serving.begin()
            await scenario(serving)

        world.run(main())


def loopback(advertised: str = "localhost") -> Any:
    return origins_of("127.0.0.1", advertised)
