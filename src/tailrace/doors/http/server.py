"""An HTTP server over the Net port: a listener, its connections, and what they share.

    server = HttpServer(net, clock, router, options)
    await server.listen()      # clients may connect, their requests wait
    server.open()
    await server.stop(grace_s) # answer what was asked, end streams, then close

It belongs to no broker: the doors' APIs are route tables that are given to it. One sweep a second looks at the
deadlines of all connections, instead of a timer for each request.
"""

import asyncio
import logging
from datetime import UTC, datetime
from typing import Final

from tailrace.doors.door import DoorCounters
from tailrace.doors.http.connection import HttpConnection
from tailrace.doors.http.errors import RETRY_AFTER_S, Problem
from tailrace.doors.http.messages import Response
from tailrace.doors.http.origins import Origins
from tailrace.doors.http.routes import Router
from tailrace.model.frozen import frozen
from tailrace.model.limits import HTTP_REQUESTS_MAX_BYTES, HTTP_UNREAD_MAX_BYTES
from tailrace.ports import Clock, Listener, Net

logger: Final = logging.getLogger(__name__)

SWEEP_S: Final = 1.0
DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@frozen
class HttpOptions:
    host: str
    port: int
    origins: Origins = Origins()
    connections_max: int = 10_000
    name: str = "http"  # of the listener, as callers have it


class HttpServer:
    def __init__(self, net: Net, clock: Clock, router: Router, options: HttpOptions) -> None:
        self._net = net
        self.clock = clock
        self.router = router
        self.options = options
        self.origins = options.origins
        self.name = options.name
        self.is_open = False  # while False, requests wait
        self.is_stopping = False
        self.held_bytes = 0  # of all requests that are not answered yet, heads and bodies
        self.counters = DoorCounters()
        self.full = Problem(
            status=503,
            detail=f"requests of more than {HTTP_REQUESTS_MAX_BYTES} bytes are being received; try again",
            kind="overloaded",
            retry_after_s=RETRY_AFTER_S,
        )
        self._connections: dict[HttpConnection, None] = {}
        self._unread: dict[HttpConnection, int] = {}  # bytes that clients leave unread; who has read last at the end
        self._unread_bytes = 0
        self._listener: Listener | None = None
        self._standing = ""
        self._standing_second = -1
        self._empty = asyncio.Event()
        self._empty.set()

    async def listen(self) -> None:
        """OSError if the address is not available. The caller runs `sweep` in the background from then on."""
        self._listener = await self._net.listen(lambda: HttpConnection(self), self.options.host, self.options.port)

    @property
    def port(self) -> int:
        assert self._listener is not None
        return self._listener.port

    def open(self) -> None:
        self.is_open = True
        for connection in list(self._connections):
            connection.serve_waiting()

    def __len__(self) -> int:
        return len(self._connections)

    # Of the connections

    def opened(self, connection: HttpConnection) -> None:
        self._connections[connection] = None
        self.counters.connections += 1
        self.counters.accepted += 1
        self._empty.clear()
        if self.is_stopping or len(self._connections) > self.options.connections_max:
            connection.abort()

    def closed(self, connection: HttpConnection) -> None:
        if connection in self._connections:
            del self._connections[connection]
            self.counters.connections -= 1
        if not self._connections:
            self._empty.set()

    def does_not_read(self, connection: HttpConnection) -> None:
        """The client of a connection leaves more of its answer unread than there is room for. When all such clients
        together leave too much, those are cut off that have not read for the longest time."""
        self._unread_bytes += connection.unsent_bytes - self._unread.pop(connection, 0)
        self._unread[connection] = connection.unsent_bytes
        while self._unread_bytes > HTTP_UNREAD_MAX_BYTES:
            slowest = next(iter(self._unread))
            self.reads(slowest)
            slowest.abort()

    def reads(self, connection: HttpConnection) -> None:
        self._unread_bytes -= self._unread.pop(connection, 0)

    @property
    def is_full(self) -> bool:
        return self.held_bytes > HTTP_REQUESTS_MAX_BYTES

    def rendered(self, path: str, problem: Problem) -> Response:
        """A problem in the form of the API that the path belongs to."""
        response = self.router.api_of(path).render(problem)
        headers = dict(response.headers)
        if problem.retry_after_s is not None:
            headers["Retry-After"] = str(problem.retry_after_s)
        if problem.allow:
            headers["Allow"] = problem.allow
        return Response(status=response.status, body=response.body, content_type=response.content_type, headers=headers)

    def standing_headers(self) -> str:
        """The header lines that all answers have."""
        second = self.clock.wall_ms() // 1000
        if second != self._standing_second:
            self._standing_second = second
            self._standing = (
                f"Date: {http_date(second)}\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
            )
        return self._standing

    async def sweep(self) -> None:
        """Close connections whose deadline has passed, in an endless loop."""
        while True:
            await asyncio.sleep(SWEEP_S)
            now = self.clock.monotonic()
            for connection in list(self._connections):
                if now >= connection.read_by or now >= connection.write_by:
                    connection.expire(now)

    # The end

    async def stop(self, grace_s: float) -> None:
        """Accept no more connections, let requests that were received be answered, then close all."""
        self.begin_stop()
        try:
            async with asyncio.timeout(grace_s):
                await self._empty.wait()
        except TimeoutError:
            logger.info("%d HTTP connections did not end within %g s", len(self._connections), grace_s)
        self.close()

    def begin_stop(self) -> None:
        self.is_stopping = True
        if self._listener is not None:
            self._listener.close()
        for connection in list(self._connections):
            connection.stop()

    def close(self) -> None:
        """Close all connections now."""
        self.is_stopping = True
        if self._listener is not None:
            self._listener.close()
        for connection in list(self._connections):
            connection.abort()


def http_date(second: int) -> str:
    """A time as HTTP has it, in English whatever the machine's locale is."""
    at = datetime.fromtimestamp(second, UTC)
    day, month = DAYS[at.weekday()], MONTHS[at.month - 1]
    return f"{day}, {at.day:02} {month} {at.year:04} {at.hour:02}:{at.minute:02}:{at.second:02} GMT"
