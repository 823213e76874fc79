"""The connection of one client: requests in, responses out, in the order of the requests.

Hot requests (Produce, Fetch) are served inside the callback that received them; deferred ones (OffsetCommit) are begun
there and answered by a callback; all others run in a task. Produce requests are pipelined: several may wait for their
acknowledgement at once. Any other request that has to wait blocks the requests behind it, whose responses could not be
sent earlier anyway. So a client that does not read its responses, or sends faster than it is served, fills its socket
and not the broker's memory. A request that was begun is completed even if the client disconnects; until then the
connection counts as open, unless the request is hot or deferred.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Coroutine
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tailrace.broker.services import Caller
from tailrace.broker.services.time_slices import TimeSlice
from tailrace.doors.kafka.call import Answer, WireCall, Written
from tailrace.doors.kafka.forwarding import serve
from tailrace.doors.kafka.handlers.cluster.api_versions import unsupported_version
from tailrace.doors.kafka.handlers.records.produce import produce_like_last
from tailrace.doors.kafka.registry import APIS, FLEXIBLE_SINCE, Api, unknown
from tailrace.model.limits import REQUESTS_IN_FLIGHT_MAX, SMALL_REQUEST_MAX_BYTES
from tailrace.ports.disk import Buffer
from tailrace.wire.compile import decode, encode_into
from tailrace.wire.framing import LENGTH_BYTES, LENGTH_LAYOUT, FramedProtocol, FrameError
from tailrace.wire.headers import API_VERSIONS_KEY, PRODUCE_KEY, read_request_header, response_header
from tailrace.wire.primitives import WireError
from tailrace.wire.produce_templates import ProduceTemplate

if TYPE_CHECKING:
    from tailrace.doors.kafka.door import KafkaDoor

logger: Final = logging.getLogger(__name__)

BUFFERED_WHILE_PAUSED_MAX_BYTES: Final = 64 * 1024
WRITE_BUFFER_MAX_BYTES: Final = 1024 * 1024
LINGER_MAX_S: Final = 5.0  # for a client to read what was sent before the broker closed the connection
REASON_MAX_CHARS: Final = 500  # of text from a client in the log
NO_FRAME: Final = memoryview(b"")
PRODUCE_API: Final = APIS[PRODUCE_KEY]


class KafkaConnection(FramedProtocol):
    def __init__(self, door: "KafkaDoor") -> None:
        super().__init__(door.settings.socket_request_max_bytes)
        self.door = door
        self._clock = door.clock
        self._caller = Caller()  # of the last request; the client id may change from one request to the next
        self.alike: ProduceTemplate | None = None  # of the last Produce: the next one often differs in the batch only
        self._waiting: deque[WireCall] = deque()  # in request order; the first has no answer yet
        self._holding: WireCall | None = None  # the waiting call that blocks later requests
        self._request_tasks: dict[asyncio.Task[None], None] = {}
        self._out: list[Buffer] = []
        self._out_bytes = 0
        self._task: asyncio.Task[None] | None = None
        self.time_slice = TimeSlice(door.slices, door.clock)
        self._ended = False  # the client has closed its side, and requests are left in the buffer
        self._gathering = False  # inside a callback that flushes at its end
        self._write_paused = False  # the client does not read its responses
        self._unsent_bytes = 0  # as last seen while writing is paused
        self._reading = True
        self._lost = False
        self._linger: asyncio.TimerHandle | None = None
        self.peer = "?"
        self.connection_number = door.next_connection_number()
        self.used_at = 0.0

    # Callbacks of the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert self.transport is not None
        host, port = transport.get_extra_info("peername", ("?", "?"))[:2]
        self.peer = f"{host}:{port}"
        self._caller = Caller(host=host, listener=self.door.listener_name)
        self.transport.set_write_buffer_limits(high=WRITE_BUFFER_MAX_BYTES)
        self.used_at = self._clock.monotonic()
        self.paused = not self.door.is_open
        self.door.opened(self)

    def connection_lost(self, error: Exception | None) -> None:
        self.paused = True
        self.transport = None
        for call in self._waiting:
            if call.abandoned is not None:
                call.abandoned()
        self._waiting.clear()
        self._out.clear()
        self._write_resumed()
        if self._linger is not None:
            self._linger.cancel()
        self._lost = True
        self.door.share_sessions.connection_lost(self.connection_number)
        self._close_in_door()

    def _close_in_door(self) -> None:
        if self._lost and self._task is None and not self._request_tasks:
            self.door.closed(self)

    def eof_received(self) -> bool:
        """Serve the requests that the client sent before it closed its side: with acks=0 it waits for no response."""
        self._ended = self.paused and self.buffered_bytes > 0
        return self._ended

    def pause_writing(self) -> None:
        self._write_paused = True
        self.paused = True
        if self.transport is not None:
            self._unsent_bytes = self.transport.get_write_buffer_size()
            self.door.unsent_bytes += self._unsent_bytes

    def resume_writing(self) -> None:
        self._write_resumed()
        self.resume_requests()

    def _write_resumed(self) -> None:
        self._write_paused = False
        self.door.unsent_bytes -= self._unsent_bytes
        self._unsent_bytes = 0

    def buffer_updated(self, count: int) -> None:
        self._gathering = True
        self.used_at = self._clock.monotonic()
        self.time_slice.begin(self.used_at)
        super().buffer_updated(count)
        if self.paused and self._reading and self.buffered_bytes > BUFFERED_WHILE_PAUSED_MAX_BYTES:
            self._stop_reading()

    def _stop_reading(self) -> None:
        if self.transport is not None:
            self._reading = False
            self.transport.pause_reading()

    # Requests

    def frame_received(self, frame: memoryview) -> None:
        try:
            like = self.alike
            if like is not None and (again := like.read(frame)) is not None:
                api, (correlation_id, partition, batch) = PRODUCE_API, again
                call = WireCall(self, NO_FRAME, 0, like.version, correlation_id, self._caller_named(like.client_id))
                answer = produce_like_last(call, like, partition, batch)
            else:
                api, call, answer = self._serve_frame(frame)
        except WireError as error:
            self.close(str(error))
            return
        except Exception:
            self.failed("a request")
            return
        call.frame = NO_FRAME  # a call that waits must not hold the buffer its frame came in
        if answer is None:
            self._wait(call, api)
        elif self._waiting:
            call.answer = answer
            self._waiting.append(call)
        else:
            self._send(answer)
        if self.time_slice.is_slow:
            self.time_slice.is_slow = False
            if self.time_slice.is_over and not self.time_slice.rests:
                self.paused = True
                self.time_slice.rest(self.resume_requests)

    def _serve_frame(self, frame: memoryview) -> tuple[Api, WireCall, Answer | None]:
        """Read the header of a request and serve it, or begin to."""
        key, version, correlation_id, client_id, at = read_request_header(frame, 0, FLEXIBLE_SINCE)
        api = APIS.get(key)
        if api is None:
            raise WireError(unknown(key))
        if len(frame) > SMALL_REQUEST_MAX_BYTES and not api.bulky:
            raise WireError(f"{api.name} of {len(frame)} bytes: at most {SMALL_REQUEST_MAX_BYTES} bytes are allowed")
        call = WireCall(self, frame, at, version, correlation_id, self._caller_named(client_id))
        if not api.versions.first <= version <= api.versions.last:
            return api, call, self._refuse_version(api, call)
        if api.hot is not None:
            return api, call, api.hot(call)
        self._serve_decoded(api, call)
        return api, call, None

    def _caller_named(self, client_id: str | None) -> Caller:
        caller = self._caller
        if caller.client_id != client_id:
            caller = self._caller = replace(caller, client_id=client_id)
        return caller

    def frame_refused(self, error: FrameError) -> None:
        self.close(str(error))

    def frames_done(self) -> None:
        self._gathering = False
        self._flush()
        if self._ended and not self.paused:
            self.close_quietly()

    def _refuse_version(self, api: Api, call: WireCall) -> Answer:
        if api.key == API_VERSIONS_KEY:
            return unsupported_version(call.correlation_id, api.versions)
        raise WireError(f"{api.name} version {call.version} is not supported, only {api.versions}")

    def _serve_decoded(self, api: Api, call: WireCall) -> None:
        assert api.request is not None
        # Bytes after the last field are ignored, as in Kafka: librdkafka writes a null array as four bytes.
        request: Any = decode(api.request, call.version, call.frame, call.at, api.elements_max)[0]
        if api.deferred is not None:
            api.deferred.begin(request, call, partial(self._respond, api, call, request))
            return
        if api.by_controller:
            call.body = bytes(call.frame[call.at :])
        self._task = asyncio.get_running_loop().create_task(self._serve(api, call, request))

    async def _serve(self, api: Api, call: WireCall, request: Any) -> None:
        try:
            answer = _encoded(api, call, await serve(api, request, call))
        except WireError as error:
            self.close(str(error))
            return
        except Exception:
            self.failed(f"{api.name} version {call.version}")
            return
        finally:
            self._task = None
            self._close_in_door()
        call.reply(answer)

    def _respond(self, api: Api, call: WireCall, request: Any, outcome: Any) -> None:
        """Answer a deferred request."""
        assert api.deferred is not None
        try:
            if isinstance(outcome, Exception):
                raise outcome
            answer = _encoded(api, call, api.deferred.response(request, call, outcome))
        except Exception:
            self.failed(f"{api.name} version {call.version}")
            return
        call.reply(answer)

    def run_in_task(self, work: Coroutine[Any, Any, None], what: str) -> None:
        """Run a part of a request in its own task; if it fails, close this connection."""
        task = asyncio.get_running_loop().create_task(self._guard(work, what))
        self._request_tasks[task] = None
        task.add_done_callback(self._request_task_done)

    async def _guard(self, work: Coroutine[Any, Any, None], what: str) -> None:
        try:
            await work
        except Exception:
            self.failed(what)

    def _request_task_done(self, task: "asyncio.Task[None]") -> None:
        del self._request_tasks[task]
        self._close_in_door()

    def failed(self, what: str) -> None:
        """Log an unexpected error, inside an except clause, and close the connection."""
        logger.exception("%s from %s failed", what, self.peer)
        self.close("a request failed with an unexpected error")

    # Answers

    def _wait(self, call: WireCall, api: Api) -> None:
        if call.answer is not None and not self._waiting:  # it was answered before its handler returned
            self._send(call.answer)
            return
        self._waiting.append(call)
        if not api.pipelined or call.holds:
            self._holding = call
            self.paused = True
        elif len(self._waiting) >= REQUESTS_IN_FLIGHT_MAX:
            self.paused = True

    def answered(self) -> None:
        """A waiting call has its answer: send the answers that are ready, in request order."""
        waiting = self._waiting
        while waiting and (answer := waiting[0].answer) is not None:
            call = waiting.popleft()
            if call is self._holding:
                self._holding = None
            self._send(answer)
        if not self._gathering:
            self._flush()
        if self.paused:
            self.resume_requests()

    def stop_holding(self, call: WireCall) -> None:
        """Later requests no longer have to wait for this one."""
        if call is self._holding:
            self._holding = None
            if self.paused:
                self.resume_requests()

    def _send(self, answer: Answer) -> None:
        if isinstance(answer, bytes):
            if answer:
                self._out.append(answer)
                self._out_bytes += len(answer)
        else:
            self._out.extend(answer)
            self._out_bytes += sum(map(len, answer))
        if self._out_bytes > WRITE_BUFFER_MAX_BYTES:
            self._flush()  # before the callback ends: a few hundred bytes of Fetch requests may ask for gigabytes

    def _flush(self) -> None:
        self._out_bytes = 0
        if self._out and self.transport is not None:
            out, self._out = self._out, []
            if len(out) == 1:
                self.transport.write(out[0])
            else:
                self.transport.writelines(out)

    @property
    def has_sent_all(self) -> bool:
        """Whether all responses were passed to the operating system: the client reads them."""
        return self.transport is not None and not self._out and self.transport.get_write_buffer_size() == 0

    def resume_requests(self) -> None:
        """Continue to read requests, unless something still blocks them."""
        is_held = self._write_paused or self._holding is not None or self.time_slice.rests or self._gathering
        if is_held or self.transport is None or not self.door.is_open:
            return
        if len(self._waiting) >= REQUESTS_IN_FLIGHT_MAX // 2:
            return
        if not self._reading:
            self._reading = True
            self.transport.resume_reading()
        if not (self.buffered_bytes or self._ended):
            self.paused = False
            return
        self._gathering = True
        self.time_slice.begin()
        self.resume_frames()

    def silent_for(self, now: float) -> float:
        """Seconds since the client sent a request or read a part of a response; 0 while it waits for a response."""
        if self._write_paused and self.transport is not None:
            unsent = self.transport.get_write_buffer_size()
            if unsent != self._unsent_bytes:
                self.door.unsent_bytes += unsent - self._unsent_bytes
                self._unsent_bytes = unsent
                self.used_at = now
        elif self._waiting:
            self.used_at = now
        return now - self.used_at

    def close(self, why: str) -> None:
        """Close the connection and log why."""
        if self.transport is not None:
            safe = why[:REASON_MAX_CHARS].encode("unicode_escape").decode()  # text from a client must not forge lines
            logger.warning("closing the connection of client %s: %s", self.peer, safe)
            self.close_quietly()

    def close_quietly(self) -> None:
        if self.transport is not None:
            self.paused = True
            self._flush()
            self.transport.close()
            if self._write_paused:
                self.transport.abort()  # the client does not read: do not wait for it
            else:
                self._linger = asyncio.get_running_loop().call_later(LINGER_MAX_S, self.transport.abort)
            self.transport = None


def _encoded(api: Api, call: WireCall, response: Any) -> Answer:
    """The frame of a response."""
    out = bytearray(LENGTH_BYTES)
    out += response_header(api.key, call.correlation_id, call.version >= api.flexible_since)
    if isinstance(response, Written):
        out += response.body
    else:
        encode_into(out, response, call.version)
    LENGTH_LAYOUT.pack_into(out, 0, len(out) - LENGTH_BYTES)
    return [out]
