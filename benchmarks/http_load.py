"""A process that sends one HTTP request after the other on each of its connections, and keeps how long each took."""

import asyncio
import json
import sys
import time
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.processes import cpu_seconds, measure

WARM_UP_SHARE: Final = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpWork:
    port: int
    pid: int  # of the server
    method: str
    path: str
    bodies: tuple[str, ...]  # connections take them in turn
    requests: int
    connections: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRun:
    requests: int
    seconds: float
    cpu_seconds: float  # of the server
    p99_ms: float

    @property
    def per_second(self) -> float:
        return self.requests / self.seconds

    @property
    def per_cpu_second(self) -> float:
        return self.requests / self.cpu_seconds


def measured(work: HttpWork) -> HttpRun:
    return HttpRun(**measure("benchmarks.http_load", work))


class Connection(asyncio.Protocol):
    """Answers are taken as they come: a whole one ends with its body, as long as its head says."""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._received = b""
        self._answered: asyncio.Future[None] | None = None

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, mark, body = self._received.partition(b"\r\n\r\n")
        if mark and len(body) >= int(head.split(b"Content-Length: ")[1].split(b"\r\n")[0]):
            assert head.startswith(b"HTTP/1.1 200 "), self._received
            self._received = b""
            assert self._answered is not None
            self._answered.set_result(None)

    async def ask(self, request: bytes) -> None:
        self._answered = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        await self._answered


async def run(work: HttpWork) -> HttpRun:
    head = f"{work.method} {work.path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n".encode()
    bodies = [body.encode() for body in work.bodies]
    requests = [head + b"Content-Length: %d\r\n\r\n%b" % (len(body), body) for body in bodies]
    loop = asyncio.get_running_loop()
    connections = [
        (await loop.create_connection(Connection, "127.0.0.1", work.port))[1] for _ in range(work.connections)
    ]
    took: list[float] = []

    async def send(number: int, connection: Connection, count: int) -> None:
        request = requests[number % len(requests)]
        for _ in range(count):
            began = time.perf_counter()
            await connection.ask(request)
            took.append(time.perf_counter() - began)

    each = work.requests // work.connections
    await asyncio.gather(
        *(send(number, one, max(1, int(each * WARM_UP_SHARE))) for number, one in enumerate(connections))
    )
    took.clear()
    cpu, began = cpu_seconds(work.pid), time.perf_counter()
    await asyncio.gather(*(send(number, one, each) for number, one in enumerate(connections)))
    seconds, used = time.perf_counter() - began, cpu_seconds(work.pid) - cpu
    p99_ms = sorted(took)[int(0.99 * len(took))] * 1000
    return HttpRun(requests=len(took), seconds=seconds, cpu_seconds=max(used, 0.01), p99_ms=p99_ms)


if __name__ == "__main__":
    import uvloop

    outcome = uvloop.run(run(HttpWork(**json.loads(sys.argv[1]))))
    fields = {name: getattr(outcome, name) for name in HttpRun.__slots__}
    print(json.dumps(fields))
