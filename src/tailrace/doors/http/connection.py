"""One connection of HTTP/1.1: requests are read by httptools, served one after the other, and answered in that order.

    bytes -> parser -> Incoming (bounds) -> waiting (at most HTTP_PIPELINED_MAX, then reading pauses)
          -> one handler at a time -> answer -> transport

The parser gets at most `PIECE_BYTES` at once, so that one read of many small requests cannot pass the bound by much.
Two deadlines are kept as plain numbers, and looked at by the server once a second: `read_by`, when the request that is
being received, or the next one, must have come; and `write_by`, when the client must have read some of its answer.

After an answer that ends the connection, what the client still sends is dropped until it closes its side: were the
socket closed at once, the kernel would reset the connection, and the client might never see the answer.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, Any, Final, cast

import httptools

from tailrace.client.faults import ClientError
from tailrace.doors.http.errors import HttpError, Problem, problem_of
from tailrace.doors.http.incoming import Incoming
from tailrace.doors.http.messages import Request, Response, Stream, head_of
from tailrace.model.caller import Caller
from tailrace.model.faults import Fault
from tailrace.model.limits import (
    HTTP_BODY_MAX_S,
    HTTP_HEAD_MAX_BYTES,
    HTTP_HEAD_MAX_S,
    HTTP_IDLE_MAX_S,
    HTTP_LINGER_MAX_S,
    HTTP_PIPELINED_MAX,
    HTTP_UNREAD_MAX_S,
    HTTP_UNSENT_MAX_BYTES,
)

if TYPE_CHECKING:
    from tailrace.doors.http.server import HttpServer

logger: Final = logging.getLogger(__name__)

PIECE_BYTES: Final = HTTP_HEAD_MAX_BYTES
SENT_LOOK_S: Final = 0.1  # between two looks whether the last answer was sent
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
LAST_CHUNK: Final = b"0\r\n\r\n"
CLOSE: Final = "Connection: close\r\n"
KEEP_ALIVE: Final = "Connection: keep-alive\r\n"


class HttpConnection(asyncio.Protocol):
    def __init__(self, server: "HttpServer") -> None:
        self._server = server
        self._now = server.clock.monotonic
        self._parser: Any = httptools.HttpRequestParser(self)
        self._incoming: Incoming | None = None
        self._waiting: deque[Incoming] = deque()
        self._serving: Incoming | None = None
        self._task: asyncio.Task[None] | None = None
        self._unread = b""  # bytes that were received while too many requests wait
        self._reading_paused = False
        self._deaf = False  # nothing that arrives is looked at any more
        self._client_ended = False
        self._streaming = False
        self._is_ending = False  # it closes when what was asked is answered and sent
        self._writable = asyncio.Event()
        self._writable.set()
        self._transport: asyncio.Transport | None = None
        self._linger: asyncio.TimerHandle | None = None
        self.caller = Caller()
        self.read_by = inf
        self.write_by = inf
        self.unsent_bytes = 0  # as last seen while the client does not read

    # Callbacks of the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=HTTP_UNSENT_MAX_BYTES)
        host = str(transport.get_extra_info("peername", ("?",))[0])
        self.caller = Caller(host=host, listener=self._server.name)
        self.read_by = self._now() + HTTP_HEAD_MAX_S
        self._server.opened(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._deaf = True
        self._client_ended = True
        self.read_by = self.write_by = inf
        self._server.reads(self)
        self._writable.set()
        for one in (self._incoming, *self._waiting):
            if one is not None:
                self._server.held_bytes -= one.held_bytes
        self._incoming = None
        self._waiting.clear()
        if self._linger is not None:
            self._linger.cancel()
        if self._streaming and self._task is not None:
            self._task.cancel()
        self._closed_if_done()

    def _closed_if_done(self) -> None:
        if self._transport is None and self._task is None:
            self._server.closed(self)

    def eof_received(self) -> bool:
        """A client that sends no more may still read: what it has asked for is answered, then the connection ends.

        With TLS, both sides close at once."""
        self._client_ended = True
        self._deaf = True
        self._watch_the_rest()
        if self._streaming and self._task is not None:
            self._task.cancel()
        is_half_open = self._transport is not None and self._transport.can_write_eof()
        return is_half_open and (self._serving is not None or bool(self._waiting))

    def pause_writing(self) -> None:
        self._writable.clear()
        self._watch_unsent()

    def resume_writing(self) -> None:
        self._writable.set()
        if not self._is_ending:
            self.write_by = inf
        self._server.reads(self)
        self._serve_next()

    def _watch_unsent(self) -> None:
        """From now on the client must read some of what is sent to it."""
        if self._transport is not None:
            self.unsent_bytes = self._transport.get_write_buffer_size()
            self.write_by = self._now() + HTTP_UNREAD_MAX_S
            self._server.does_not_read(self)

    def _watch_the_rest(self) -> None:
        """The connection ends when all is sent, which must not take for ever."""
        self._is_ending = True
        if self._transport is not None and self._transport.get_write_buffer_size():
            self._watch_unsent()

    def data_received(self, data: bytes) -> None:
        self._server.counters.received_bytes += len(data)
        if self._deaf:
            return
        if self._reading_paused:
            self._unread += data
        else:
            self._read(data)

    # Reading

    def _read(self, data: bytes) -> None:
        for at in range(0, len(data), PIECE_BYTES):
            if len(self._waiting) >= HTTP_PIPELINED_MAX:
                self._unread = data[at:]
                self._pause_reading()
                break
            self._parse(data[at : at + PIECE_BYTES] if len(data) > PIECE_BYTES else data)
            if self._deaf:
                break
        self._serve_next()

    def _parse(self, piece: bytes) -> None:
        if self._incoming is not None:
            self._incoming.raw_bytes += len(piece)
        try:
            self._parser.feed_data(piece)
        except httptools.HttpParserUpgrade:
            self._deaf = True  # the request was served without the upgrade; what follows would be another protocol
            return
        except httptools.HttpParserCallbackError:
            raise
        except httptools.HttpParserError:
            self._end_with(400, "the request is not valid HTTP/1.1 (RFC 9112)")
            return
        incoming = self._incoming
        if incoming is not None:
            incoming.check_raw_bytes()
            if incoming.closes:
                self._end()

    def _end_with(self, status: int, detail: str) -> None:
        if self._deaf:
            return
        if self._incoming is None:
            self._incoming = Incoming(self._server.router)
        self._incoming.refuse(status, detail)
        self._end()

    def _end(self) -> None:
        """The incoming request is the last one: it is answered with its problem, after those before it."""
        assert self._incoming is not None
        self._deaf = True
        self._waiting.append(self._incoming)
        self._incoming = None
        self.read_by = inf

    def _pause_reading(self) -> None:
        self._reading_paused = True
        self.read_by = inf
        if self._transport is not None:
            self._transport.pause_reading()

    def _resume_reading(self) -> None:
        self._reading_paused = False
        unread, self._unread = self._unread, b""
        self._expect_more()
        if self._transport is not None:
            self._transport.resume_reading()
            self._read(unread)

    def _expect_more(self) -> None:
        if self._incoming is not None:
            self.read_by = self._now() + (HTTP_BODY_MAX_S if self._incoming.has_head else HTTP_HEAD_MAX_S)
        elif self._serving is None and not self._waiting:
            self.read_by = self._now() + HTTP_IDLE_MAX_S
        else:
            self.read_by = inf

    # Callbacks of the parser

    def on_message_begin(self) -> None:
        if not self._deaf:
            self._incoming = Incoming(self._server.router)
            self.read_by = self._now() + HTTP_HEAD_MAX_S

    def on_url(self, part: bytes) -> None:
        if self._incoming is not None and not self._incoming.closes:
            self._incoming.add_target(part)

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._incoming is not None and not self._incoming.closes:
            self._incoming.add_header(name, value)

    def on_headers_complete(self) -> None:
        incoming, parser = self._incoming, self._parser
        if incoming is None or incoming.closes:
            return
        method = parser.get_method().decode("ascii")
        incoming.head_complete(method, parser.get_http_version(), parser.should_keep_alive(), self._server.origins)
        self._server.held_bytes += incoming.head_bytes
        self._check_room(incoming)
        self.read_by = self._now() + HTTP_BODY_MAX_S
        if incoming.expects_continue and not incoming.closes and not self._waiting and self._serving is None:
            self._write(CONTINUE)

    def on_body(self, part: bytes) -> None:
        incoming = self._incoming
        if incoming is None or incoming.closes:
            return
        self._server.held_bytes += len(part)
        incoming.add_body(part)
        self._check_room(incoming)

    def _check_room(self, incoming: Incoming) -> None:
        if self._server.is_full:
            incoming.problem = self._server.full
            incoming.closes = True

    def on_message_complete(self) -> None:
        incoming = self._incoming
        if incoming is None:
            return
        self._incoming = None
        self._waiting.append(incoming)
        self.read_by = inf
        if incoming.closes or not incoming.keeps_alive:
            self._deaf = True

    # Serving

    def _serve_next(self) -> None:
        while self._serving is None and self._waiting and self._writable.is_set() and self._server.is_open:
            incoming = self._serving = self._waiting.popleft()
            problem = incoming.problem
            if problem is None and incoming.match is not None:
                self._task = asyncio.get_running_loop().create_task(self._serve(incoming))
            elif problem is None:
                self._respond(incoming, OPTIONS)
            else:
                self._respond(incoming, self._rendered(incoming, problem))
        if self._reading_paused and len(self._waiting) <= HTTP_PIPELINED_MAX // 2 and not self._deaf:
            self._resume_reading()

    def serve_waiting(self) -> None:
        """The server is open now: serve what has waited."""
        self._serve_next()

    async def _serve(self, incoming: Incoming) -> None:
        try:
            response = await self._handled(incoming)
            if isinstance(response, Stream):
                await self._stream(incoming, response)
            else:
                self._respond(incoming, response)
        finally:
            self._task = None
            self._closed_if_done()
        self._serve_next()

    async def _handled(self, incoming: Incoming) -> Response | Stream:
        assert incoming.match is not None
        request = Request(
            method=incoming.method,
            path=incoming.path,
            parameters=incoming.match.parameters,
            query=incoming.query,
            headers=incoming.headers,
            body=incoming.body,
            caller=self.caller,
            client_is_gone=lambda: self._client_ended,
        )
        try:
            return await incoming.match.route.handler(request)
        except (HttpError, Fault, ClientError) as error:
            return self._rendered(incoming, problem_of(error))
        except Exception:
            logger.exception("%s %s failed", incoming.method, incoming.match.route.path)
            incoming.closes = True
            detail = "the server failed at this request; its log has the reason"
            return self._rendered(incoming, Problem(status=500, detail=detail))

    def _rendered(self, incoming: Incoming, problem: Problem) -> Response:
        return self._server.rendered(incoming.path, problem)

    # Answering

    def _respond(self, incoming: Incoming, response: Response) -> None:
        closes = self._closes(incoming)
        fixed = f"Content-Type: {response.content_type}\r\n" if response.body else ""
        if response.status != 204:
            fixed = f"Content-Length: {len(response.body)}\r\n{fixed}"
        head = self._head(incoming, response.status, response.headers, fixed, closes)
        self._write(head if incoming.method == "HEAD" else head + response.body)
        self._answered(incoming, closes)

    def _head(self, incoming: Incoming, status: int, headers: Any, fixed: str, closes: bool) -> bytes:
        self._server.counters.requests += 1
        self._server.counters.failed += status >= 400
        connection = CLOSE if closes else KEEP_ALIVE if incoming.version == "1.0" else ""
        lines = f"{self._server.standing_headers()}{connection}{fixed}"
        return head_of(status, headers, lines) + b"\r\n"

    def _closes(self, incoming: Incoming) -> bool:
        is_last = self._client_ended and not self._waiting
        return incoming.closes or not incoming.keeps_alive or is_last or self._server.is_stopping

    async def _stream(self, incoming: Incoming, stream: Stream) -> None:
        chunked = incoming.version == "1.1"
        closes = self._closes(incoming) or not chunked
        fixed = f"Content-Type: {stream.content_type}\r\n" + ("Transfer-Encoding: chunked\r\n" if chunked else "")
        self._write(self._head(incoming, stream.status, stream.headers, fixed, closes))
        self._streaming = True
        try:
            if incoming.method != "HEAD" and not self._server.is_stopping and not self._client_ended:
                closes = not await self._send_chunks(stream, chunked=chunked) or closes
            if self._server.is_stopping and incoming.method != "HEAD":
                self._write_chunk(stream.farewell, chunked=chunked)
        finally:
            self._streaming = False
            if isinstance(stream.chunks, AsyncGenerator):
                await stream.chunks.aclose()
        if chunked and incoming.method != "HEAD":
            self._write(LAST_CHUNK)
        self._answered(incoming, closes or self._server.is_stopping)

    async def _send_chunks(self, stream: Stream, *, chunked: bool) -> bool:
        """Whether all was sent: not if the client is gone, the server stops, or the source of the stream fails."""
        try:
            async for chunk in stream.chunks:
                self._write_chunk(chunk, chunked=chunked)
                await self._writable.wait()
        except asyncio.CancelledError:
            if not (self._client_ended or self._server.is_stopping):
                raise
            return False
        except (HttpError, Fault, ClientError) as error:
            logger.info("ending an HTTP stream to %s: %s", self.caller.host, error)
            return False
        except Exception:
            logger.exception("an HTTP stream failed unexpectedly")
            return False
        return True

    def _write_chunk(self, chunk: bytes, *, chunked: bool) -> None:
        if chunk:
            self._write(b"%x\r\n%b\r\n" % (len(chunk), chunk) if chunked else chunk)

    def _write(self, data: bytes) -> None:
        if self._transport is not None:
            self._server.counters.sent_bytes += len(data)
            self._transport.write(data)
            if self._is_ending or not self._writable.is_set():
                self._watch_unsent()

    def _answered(self, incoming: Incoming, closes: bool) -> None:
        self._server.held_bytes -= incoming.held_bytes
        self._serving = None
        if closes:
            self._close_after_answer()
            return
        following = self._incoming
        if following is not None and following.expects_continue and following.has_head and not self._waiting:
            self._write(CONTINUE)
        if self._incoming is None and not self._waiting and not self._reading_paused:
            self.read_by = self._now() + HTTP_IDLE_MAX_S

    # Closing

    def _close_after_answer(self) -> None:
        self._deaf = True
        self.read_by = inf
        for one in self._waiting:
            self._server.held_bytes -= one.held_bytes
        self._waiting.clear()
        if self._transport is None:
            return
        if self._transport.can_write_eof():
            with suppress(OSError):  # the client is gone
                self._transport.write_eof()
            if self._reading_paused:
                self._reading_paused = False
                self._transport.resume_reading()
        self._watch_the_rest()
        self._close_when_sent()

    def _close_when_sent(self) -> None:
        """Close the connection in a way that lets the client read the answer, however long that takes; one that reads
        nothing of it is cut off. With TLS, `close` would not wait for long."""
        if self._transport is None:
            return
        if self._transport.get_write_buffer_size():
            self._linger = asyncio.get_running_loop().call_later(SENT_LOOK_S, self._close_when_sent)
        elif self._client_ended or not self._transport.can_write_eof():
            self._transport.close()
        else:
            self._linger = asyncio.get_running_loop().call_later(HTTP_LINGER_MAX_S, self.abort)

    def expire(self, now: float) -> None:
        """A deadline may have passed: a client that sends too slowly is told so, one that does not read is cut off."""
        if now >= self.write_by:
            self._expire_unsent()
        elif now >= self.read_by:
            if self._incoming is None:
                self.close()
            else:
                self._end_with(408, "the request did not come completely in time")
                self._serve_next()

    def _expire_unsent(self) -> None:
        """Cut off a client, unless it has read something since the last look."""
        assert self._transport is not None
        unsent = self._transport.get_write_buffer_size()
        if unsent < self.unsent_bytes:
            self._watch_unsent()
        elif unsent:
            self.abort()
        else:
            self.write_by = inf

    def stop(self) -> None:
        """The server stops: idle connections end now, others with their next answer, streams with their farewell."""
        if self._streaming and self._task is not None:
            self._task.cancel()
        elif self._serving is None and not self._waiting:
            self.close()

    def close(self) -> None:
        self._deaf = True
        self.read_by = inf
        self._watch_the_rest()
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()


OPTIONS: Final = Response(status=204)
