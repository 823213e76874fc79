"""The connection of one client: requests in, responses out, in the order of the requests.

Requests are served one after the other, as if the next one came only after the response; but PUSHes that follow each
other are pipelined, because their order is kept all the same. While `DMQP_REQUESTS_IN_FLIGHT_MAX` requests or
`DMQP_IN_FLIGHT_MAX_BYTES` of payloads have no response yet, or the client does not read its responses, nothing is read
from it, and nothing is popped for it: so a client fills its own socket, and not the server's memory.
"""

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, Final, cast

from tailrace.doors.dmqp.answer_queue import ANSWER_MAX_S, AnswerQueue, Place
from tailrace.doors.dmqp.codec import Method, Status
from tailrace.doors.dmqp.queues import Stored
from tailrace.doors.dmqp.request_reader import Request, RequestReader
from tailrace.doors.dmqp.statuses import status_of
from tailrace.model.limits import (
    DMQP_IN_FLIGHT_MAX_BYTES,
    DMQP_PAYLOADS_HELD_MAX_BYTES,
    DMQP_READ_BYTES,
    DMQP_REQUESTS_IN_FLIGHT_MAX,
    DMQP_UNSENT_MAX_BYTES,
)
from tailrace.ports.net import keep_alive

if TYPE_CHECKING:
    from tailrace.client.producer import Written
    from tailrace.doors.dmqp.door import DmqpDoor

logger: Final = logging.getLogger(__name__)

MILLISECONDS: Final = 1000  # of a second
LINGER_MAX_S: Final = 5.0  # for a client to read what was sent before the server closed the connection


class DmqpConnection(asyncio.BufferedProtocol):
    def __init__(self, door: "DmqpDoor") -> None:
        self._door = door
        self._clock = door.clock
        self._reader = RequestReader(door.codec)
        self._answers = AnswerQueue()
        self._rest = b""  # was read, and waits until fewer requests are in flight
        self._waiting: deque[tuple[Place, Request]] = deque()  # not begun yet, in request order
        self._pushes = 0  # that are not acknowledged
        self._writing: deque[tuple[PushUnderWay, asyncio.Future[Written]]] = (
            deque()
        )  # of these, what is at the producer
        self._written = asyncio.Event()  # set while no PUSH is under way
        self._written.set()
        self._writable = asyncio.Event()  # set while the client reads its responses
        self._writable.set()
        self._task: asyncio.Task[None] | None = None
        self._held_bytes = 0  # as the door knows it
        self._is_reading = True
        self._ended = False  # the client has closed its side
        self._transport: asyncio.Transport | None = None
        self._linger: asyncio.TimerHandle | None = None
        self.peer = "?"
        self._heard_at = 0.0  # when the client last sent anything
        self._request_began_at = 0.0  # when the first byte of the request that arrives came
        self._request_bytes = 0  # that came since then
        self._has_spoken = False  # a whole request came
        self._read_ms = 0  # by the wall clock, when the last request was read
        self._unsent_bytes = 0  # as last seen while the client does not read
        self._unsent_since = 0.0

    # Callbacks of the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        host, port = transport.get_extra_info("peername", ("?", "?"))[:2]
        self.peer = f"{host}:{port}"
        self._transport.set_write_buffer_limits(high=DMQP_UNSENT_MAX_BYTES)
        keep_alive(transport, self._door.socket_timeout_s)
        self._heard_at = self._request_began_at = self._clock.monotonic()
        if not self._door.is_open:
            self._is_reading = False
            self._transport.pause_reading()
        self._door.opened(self)

    def begin(self) -> None:
        """The door has opened: read what the client has sent."""
        self._resume_reading()

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._waiting.clear()
        self._answers.clear()
        self._rest = b""
        self._reader = RequestReader(self._door.codec)
        self._writable.set()
        self._door.reads(self)
        if self._linger is not None:
            self._linger.cancel()
        self._account()
        self._door.closed(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._door.read_buffer  # of all connections: nothing stays in it after `buffer_updated`

    def buffer_updated(self, count: int) -> None:
        now = self._clock.monotonic()
        self._heard_at = now
        self._door.counters.received_bytes += count
        if self._reader.is_between_requests:
            self._request_began_at, self._request_bytes = now, 0
        self._request_bytes += count
        data = self._door.read_buffer[:count]
        if self._rest:
            data = memoryview(self._rest + data)
        self._take(data)

    def eof_received(self) -> bool:
        """Answer what was asked before the client closed its side. With TLS, both sides close at once."""
        self._ended = self._transport is not None and self._transport.get_extra_info("sslcontext") is None
        return self._ended and (len(self._answers) > 0 or bool(self._rest))

    def pause_writing(self) -> None:
        self._writable.clear()
        self._unsent_since = self._clock.monotonic()
        self._unsent_bytes = self._transport.get_write_buffer_size() if self._transport is not None else 0
        self._door.does_not_read(self, self._unsent_bytes)

    def resume_writing(self) -> None:
        self._writable.set()
        self._door.reads(self)
        self._resume_reading()

    # Requests

    def _take(self, data: memoryview) -> None:
        requests, used = self._reader.feed(data, DMQP_REQUESTS_IN_FLIGHT_MAX - len(self._answers))
        self._rest = bytes(data[used:])
        self._account()
        if requests:
            self._read_ms = self._clock.wall_ms()
            self._has_spoken = True
            self._request_began_at, self._request_bytes = self._heard_at, len(data) - used
        for request in requests:
            self._add(request)
        if self._door.held_bytes > DMQP_PAYLOADS_HELD_MAX_BYTES and (dropped := self._reader.drop_payload()):
            self._add(dropped)
        self._account()
        if not self._has_room and self._is_reading and self._transport is not None:
            self._is_reading = False
            self._transport.pause_reading()
        self._flush()

    def _add(self, request: Request) -> None:
        door, (_, topic_id, payload, refusal) = self._door, request
        if payload and door.held_bytes > DMQP_PAYLOADS_HELD_MAX_BYTES:
            payload, refusal = b"", Status.EAGAIN
        place = self._answers.add(topic_id, len(payload), self._heard_at)
        if refusal is not None:
            self._answer(place, refusal)
        elif door.is_closing:
            self._answer(place, Status.EAGAIN)
        elif request.method == Method.PUSH and self._task is None:
            self._push(place, request)
        else:
            self._waiting.append((place, request))
            if self._task is None:
                self._task = asyncio.get_running_loop().create_task(self._serve())

    @property
    def _has_room(self) -> bool:
        return (
            self._writable.is_set()
            and not self._rest
            and len(self._answers) < DMQP_REQUESTS_IN_FLIGHT_MAX
            and self._answers.held_bytes < DMQP_IN_FLIGHT_MAX_BYTES
        )

    def _account(self) -> None:
        """Tell the door how many bytes of payloads are kept for this connection."""
        held = self._reader.held_bytes + self._answers.held_bytes
        self._door.held_bytes += held - self._held_bytes
        self._held_bytes = held

    def _resume_reading(self) -> None:
        """Read again, when enough requests were answered."""
        if self._transport is None or not self._writable.is_set():
            return
        if len(self._answers) > DMQP_REQUESTS_IN_FLIGHT_MAX // 2:
            return
        if self._answers.held_bytes > DMQP_IN_FLIGHT_MAX_BYTES // 2:
            return
        if self._rest:
            self._take(memoryview(self._rest))
        if self._transport is None or not self._has_room:
            return
        if self._ended and not len(self._answers):
            self.close_quietly()
        elif not self._is_reading:
            self._is_reading = True
            self._transport.resume_reading()

    async def _serve(self) -> None:
        """Serve the requests that wait, until there are no more."""
        try:
            while self._waiting:
                if self._waiting[0][1].method == Method.PUSH:
                    self._push(*self._waiting.popleft())
                    continue
                await self._written.wait()
                await self._writable.wait()
                if self._waiting:
                    await self._read_one(*self._waiting.popleft())
                    self._flush()
        finally:
            self._task = None

    def _push(self, place: Place, request: Request) -> None:
        if place.response is None:
            if not self._pushes:
                self._written.clear()
            self._pushes += 1
            self._door.queues.push(request.topic_id, PushUnderWay(self, place, request.payload, self._read_ms))

    def push_begun(self, push: "PushUnderWay", written: "asyncio.Future[Written]") -> None:
        self._writing.append((push, written))
        if len(self._writing) == 1:
            written.add_done_callback(self._acknowledged)

    def push_failed(self, push: "PushUnderWay", error: Exception) -> None:
        self._push_answered(push, status_of(error))
        self._flush()

    def _acknowledged(self, _: object) -> None:
        """The first PUSH at the producer was written or has failed, and maybe those behind it."""
        while self._writing and self._writing[0][1].done():
            push, written = self._writing.popleft()
            error = written.exception()
            self._push_answered(push, Status.OK if error is None else status_of(error))
        if self._writing:
            self._writing[0][1].add_done_callback(self._acknowledged)
        self._flush()

    def _push_answered(self, push: "PushUnderWay", status: Status) -> None:
        self._pushes -= 1
        if not self._pushes:
            self._written.set()
        self._answer(push.place, status, push.timestamp_ms // MILLISECONDS if status is Status.OK else 0)

    async def _read_one(self, place: Place, request: Request) -> None:
        """Serve a POP, PEEK or PEEK_TIMESTAMP."""
        if place.response is not None:
            return
        queues = self._door.queues
        try:
            async with asyncio.timeout(ANSWER_MAX_S):
                if request.method == Method.POP:
                    found = await queues.pop(request.topic_id, lambda: self._is_awaited(place))
                else:
                    found = await queues.peek(request.topic_id)
        except Exception as error:
            self._answer(place, status_of(error))
        else:
            self._answer_found(place, found, only_timestamp=request.method == Method.PEEK_TIMESTAMP)

    def _is_awaited(self, place: Place) -> bool:
        """Whether the client can still get this response: a message that it cannot get must not be popped."""
        return self._transport is not None and not self._transport.is_closing() and place.response is None

    # Responses

    def _answer_found(self, place: Place, found: Stored | None, *, only_timestamp: bool) -> None:
        if found is None:
            self._answer(place, Status.ENODATA)
        else:
            payload = b"" if only_timestamp else found.payload
            self._answer(place, Status.OK, found.timestamp_ms // MILLISECONDS, payload)

    def _answer(self, place: Place, status: Status, timestamp: int = 0, payload: bytes = b"") -> None:
        if place.response is None:
            place.response = self._door.codec.response(place.topic_id, status, timestamp, payload)
            self._door.count(status)

    def _flush(self) -> None:
        if self._transport is None:
            return
        if out := self._answers.due():
            self._account()
            self._door.progressed.set()
            data = out[0] if len(out) == 1 else b"".join(out)
            self._door.counters.sent_bytes += len(data)
            self._transport.write(data)
            if not self._is_reading or self._rest or self._ended:
                self._resume_reading()

    # Time

    def check_time(self, now: float) -> None:
        """Once a second: end what takes too long."""
        for place in self._answers.overdue(now):
            self._answer(place, Status.EAGAIN)
        self._flush()
        if why := self._timed_out(now):
            self.close(why)

    def _timed_out(self, now: float) -> str | None:
        """Why the connection has to be closed; None if it has not.

        A request must arrive within the timeout, and within as long again for every 64 KiB of it. A client that said
        nothing at all has the same time. Between requests the operating system asks whether the client is still there.
        """
        timeout_s = self._door.socket_timeout_s
        if not self._writable.is_set() and self._transport is not None:
            unsent = self._transport.get_write_buffer_size()
            if unsent != self._unsent_bytes:
                self._unsent_bytes, self._unsent_since = unsent, now
            return f"it read no response for {timeout_s:g} s" if now - self._unsent_since > timeout_s else None
        if self._rest or len(self._answers):
            return None
        if not self._reader.is_between_requests:
            allowed_s = timeout_s * (1 + self._request_bytes // DMQP_READ_BYTES)
            late = now - self._request_began_at > allowed_s or now - self._heard_at > timeout_s
            return f"a request did not arrive within {timeout_s:g} s" if late else None
        if not self._has_spoken and now - self._heard_at > timeout_s:
            return f"it sent nothing for {timeout_s:g} s"
        idle_s = self._door.idle_max_s
        return f"it was idle for {idle_s:g} s (connections.max.idle.ms)" if now - self._heard_at > idle_s else None

    # Closing

    @property
    def requests_in_flight(self) -> int:
        """Requests without a response."""
        return len(self._answers)

    @property
    def is_write_paused(self) -> bool:
        """Whether the client does not read its responses."""
        return not self._writable.is_set()

    def stop(self) -> None:
        """The server stops: what is not answered has an unknown outcome."""
        for place in self._answers.unanswered():
            self._answer(place, Status.EAGAIN)
        self.close_quietly()

    def close(self, why: str) -> None:
        if self._transport is not None:
            logger.info("closing the connection of client %s: %s", self.peer, why)
            self.close_quietly()

    def close_quietly(self) -> None:
        transport = self._transport
        if transport is None:
            return
        self._waiting.clear()
        if out := self._answers.due():
            transport.write(b"".join(out))
        transport.close()
        if not self._writable.is_set():
            transport.abort()  # the client does not read: do not wait for it
        elif self._linger is None:
            self._linger = asyncio.get_running_loop().call_later(LINGER_MAX_S, transport.abort)


class PushUnderWay:
    """A message on its way to the log."""

    __slots__ = ("_connection", "payload", "place", "timestamp_ms")

    def __init__(self, connection: DmqpConnection, place: Place, payload: bytes, timestamp_ms: int) -> None:
        self._connection = connection
        self.place = place
        self.payload = payload
        self.timestamp_ms = timestamp_ms

    def is_awaited(self) -> bool:
        return self.place.response is None

    def begun(self, written: "asyncio.Future[Written]") -> None:
        self._connection.push_begun(self, written)

    def failed(self, error: Exception) -> None:
        self._connection.push_failed(self, error)
