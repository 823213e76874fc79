"""The listener of the gRPC door: it carries bytes between gRPC and the services. Only it and `credentials` import gRPC.

gRPC parses HTTP/2, keeps connections alive and enforces deadlines and limits, in threads of its own. Requests come here
as bytes and are parsed here, so that bytes that do not parse get an error that says so. A request counts as held until
its call ends, or for a stream until the next one is read; beyond `GRPC_HELD_MAX_BYTES` calls are refused.

What a service raises becomes the status of the call (`statuses`), with the standard details of google.rpc: ErrorInfo,
and RetryInfo or BadRequest where they apply. Any other exception is a bug: the call gets INTERNAL, and the process
fails, as it does with bugs elsewhere.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import grpc
from google.protobuf.message import DecodeError
from grpc import aio

from tailrace.client.cluster import Retry
from tailrace.client.faults import ClientError, Refused
from tailrace.doors.client_doors import CannotOpen
from tailrace.doors.door import CannotListen, DoorCounters
from tailrace.doors.grpc.calls import Call, Failed, Service, Stream, Streaming, Unary
from tailrace.doors.grpc.credentials import server_credentials
from tailrace.doors.grpc.message_queue.service import MessageQueue
from tailrace.doors.grpc.message_queue.translation import message_queue
from tailrace.doors.grpc.peer_address import peer_host
from tailrace.doors.grpc.reading import Reading
from tailrace.doors.grpc.schema import load_schema
from tailrace.doors.grpc.statuses import Status, status_of
from tailrace.doors.grpc.tools import Health, Reflection
from tailrace.doors.grpc.v1.consuming import Consuming
from tailrace.doors.grpc.v1.groups import Brokers, Groups
from tailrace.doors.grpc.v1.producing import Producing
from tailrace.doors.grpc.v1.topics import Topics
from tailrace.doors.grpc.v1.working import Working
from tailrace.doors.upstream import ClientHost
from tailrace.model.addresses import Address
from tailrace.model.caller import Caller
from tailrace.model.faults import Fault
from tailrace.model.limits import (
    GRPC_CALLS_MAX,
    GRPC_CALLS_PER_CONNECTION_MAX,
    GRPC_CONSUMERS_MAX,
    GRPC_HELD_MAX_BYTES,
    GRPC_MESSAGE_MAX_BYTES,
    GRPC_METADATA_MAX_BYTES,
    GRPC_WINDOW_BYTES,
)
from tailrace.model.listeners import GRPC_LISTENER
from tailrace.ports import BadCertificates
from tailrace.ports.tls import SystemTls
from tailrace.wire.errors import Error

logger: Final = logging.getLogger(__name__)

DETAILS: Final = "grpc-status-details-bin"
DOMAIN: Final = "tailrace"
KEEPALIVE_MS: Final = 60_000  # a connection that is silent for so long is asked whether it is still there
HANDSHAKE_MAX_MS: Final = 10_000  # of TLS and HTTP/2, from the connection on
KEEPALIVE_TIMEOUT_MS: Final = 20_000
PING_INTERVAL_MIN_MS: Final = 5_000  # a client that pings more often is disconnected
STOP_MAX_S: Final = 2.0  # beyond the grace, for gRPC itself to stop
LASTING: Final = ("Consume", "Work")  # methods whose streams have connections and buffers of their own
NO_RESPONSE: Final = b""  # of a call that failed: gRPC sends the status alone
CODES: Final = {one.value[0]: one for one in grpc.StatusCode}


class StreamGone(Exception):
    """The client is gone, or has given up."""


class GrpcDoor:
    listener_name: Final = GRPC_LISTENER

    def __init__(self, host: ClientHost) -> None:
        host.ports.host.set_variable("GRPC_VERBOSITY", "NONE")  # else gRPC's own log lines get between ours
        logging.getLogger("grpc._cython.cygrpc").addFilter(_is_of_interest)
        self._host = host
        self._schema = load_schema()
        self._opened = asyncio.Event()
        self._stopping: asyncio.Task[None] | None = None
        self._lasting: dict[asyncio.Future[None], None] = {}
        self._held_bytes = 0
        self._reading = Reading()
        self._callers: dict[str, int] = {}  # by peer, its calls under way
        self._port = 0
        self.counters = DoorCounters()
        services = self._services()
        names = [one.name for one in services]
        self._health = Health(self._schema, names)
        services.append(self._health.service())
        if host.settings.grpc_reflection_enable:
            services.append(Reflection(self._schema, names).service())
        self._server = aio.server(
            handlers=[self._handler(one) for one in services],
            options=_options(host.settings.connections_max_idle_ms),
            maximum_concurrent_rpcs=GRPC_CALLS_MAX,
        )

    def _services(self) -> list[Service]:
        upstream, schema = self._host.upstream, self._schema
        makers = (Producing, Consuming, Working, Topics, Groups, Brokers)
        return [message_queue(MessageQueue(upstream), schema), *(one(upstream, schema).service() for one in makers)]

    # A door

    @property
    def endpoint(self) -> Address:
        return Address(self._host.advertised_host, self._port)

    async def listen(self) -> None:
        host, port = self._host.settings.host, self._host.settings.grpc_port
        try:
            self._port = self._add_port(str(Address(host, port)))
        except BadCertificates as error:
            raise CannotOpen(f"the gRPC door cannot use its certificate: {error}") from None
        except RuntimeError:
            raise CannotListen(GRPC_LISTENER, host, port, "--grpc-port", await self._why(host, port)) from None
        await self._server.start()

    def _add_port(self, address: str) -> int:
        tls = self._host.tls(GRPC_LISTENER)
        if tls is None:
            return int(self._server.add_insecure_port(address))
        assert isinstance(tls, SystemTls)  # gRPC has sockets of its own, so it is never simulated
        return int(self._server.add_secure_port(address, server_credentials(tls)))

    async def _why(self, host: str, port: int) -> OSError:
        """gRPC does not tell why it cannot listen: try it."""
        try:
            listener = await self._host.ports.net.listen(asyncio.BufferedProtocol, host, port)
        except OSError as error:
            return error
        listener.close()
        return OSError(0, f"gRPC cannot listen at {Address(host, port)}")

    def open(self) -> None:
        self._opened.set()
        self._health.set(is_serving=True)

    def close(self) -> None:
        """Begin to stop at once; `stop` waits for it."""
        self._begin_to_stop(0.0)

    async def stop(self, grace_s: float) -> None:
        await self._begin_to_stop(grace_s)

    def _begin_to_stop(self, grace_s: float) -> "asyncio.Task[None]":
        if self._stopping is None:
            self._health.set(is_serving=False)
            self._stopping = asyncio.get_running_loop().create_task(self._stop(grace_s))
            for stream in list(self._lasting):  # would last longer than any grace
                stream.cancel()
        return self._stopping

    async def _stop(self, grace_s: float) -> None:
        try:
            async with asyncio.timeout(grace_s + STOP_MAX_S):
                await self._server.stop(grace_s)
        except TimeoutError:
            logger.warning("gRPC did not stop within %g s", grace_s + STOP_MAX_S)

    # Calls

    def _handler(self, service: Service) -> grpc.GenericRpcHandler:
        """All methods of a service; each that its descriptor has must be there."""
        handlers: dict[str, grpc.RpcMethodHandler] = {}
        for method in self._schema.service(service.name).methods:
            request_class = self._schema.message_class(method.input_type)
            if method.client_streaming:
                serve = self._streaming(service.streaming[method.name], request_class, method.name in LASTING)
                handlers[method.name] = grpc.stream_stream_rpc_method_handler(serve)
            elif method.server_streaming:
                serve = self._streaming(service.streaming[method.name], request_class, is_lasting=True)
                handlers[method.name] = grpc.unary_stream_rpc_method_handler(serve)
            else:
                serve_one = self._unary(service.unary[method.name], request_class)
                handlers[method.name] = grpc.stream_unary_rpc_method_handler(serve_one)  # reads its request itself
        return grpc.method_handlers_generic_handler(service.name, handlers)

    def _unary(self, method: Unary, request_class: Any) -> Callable[[Any, Any], Awaitable[bytes]]:
        async def serve(_: Any, context: Any) -> bytes:
            peer, size = self._begin(context), 0
            try:
                async with _Answering(self, context):
                    data = await self._read(context)
                    size = len(data)
                    self.held(size)
                    self.check_room()
                    await self._opened.wait()
                    response = await method(_parsed(request_class, data), _call(context))
                    answer: bytes = response.SerializeToString()
                    self.counters.sent_bytes += len(answer)
                    return answer
            finally:
                self._end(peer, size)
            return NO_RESPONSE

        return serve

    async def _read(self, context: Any) -> bytes:
        """The request of a unary call."""
        data = await self._reading.read(context)
        if data is aio.EOF:
            raise Refused(Error.INVALID_REQUEST, "read the request", "the call has none")
        return bytes(data)

    def _streaming(
        self, method: Streaming, request_class: Any, is_lasting: bool
    ) -> Callable[[Any, Any], Awaitable[None]]:
        async def serve(request: Any, context: Any) -> None:
            only = request if isinstance(request, bytes) else None
            stream = _GrpcStream(self, context, request_class, only)
            peer = self._begin(context)
            try:
                async with _Answering(self, context):
                    self.check_room()
                    await self._opened.wait()
                    await stream.begin()
                    await self._lasts(method, stream, is_lasting)
            finally:
                self._end(peer, stream.held)

        return serve

    async def _lasts(self, method: Streaming, stream: Stream, is_lasting: bool) -> None:
        """Serve a stream, which ends early when the door closes."""
        if is_lasting and len(self._lasting) >= GRPC_CONSUMERS_MAX:
            raise _exhausted(f"{GRPC_CONSUMERS_MAX} such streams are open, which is the limit")
        task = asyncio.ensure_future(method(stream))
        task.add_done_callback(lambda one: one.cancelled() or one.exception())  # of one whose client is gone
        if is_lasting:
            self._lasting[task] = None
        try:
            await task
        except asyncio.CancelledError:
            if self._stopping is None or not task.cancelled():
                raise
            raise Retry("this server is stopping") from None
        finally:
            self._lasting.pop(task, None)
            task.cancel()

    def _begin(self, context: Any) -> str:
        """A call begins; its caller, whom gRPC may not know any more when it ends."""
        peer = str(context.peer())
        if peer not in self._callers:
            self.counters.accepted += 1
        self._callers[peer] = self._callers.get(peer, 0) + 1
        self.counters.connections = len(self._callers)
        return peer

    def _end(self, peer: str, size: int) -> None:
        self.held(-size)
        self._callers[peer] -= 1
        if not self._callers[peer]:
            del self._callers[peer]
        self.counters.connections = len(self._callers)
        self.counters.requests += 1

    def held(self, size: int) -> None:
        self._held_bytes += size
        self.counters.received_bytes += max(0, size)

    def check_room(self) -> None:
        if self._held_bytes > GRPC_HELD_MAX_BYTES:
            raise _exhausted("too many requests are being served")

    def bug(self, error: Exception) -> None:
        logger.error("a gRPC call failed unexpectedly", exc_info=error)
        self._host.spawn(_raising(error))

    def trailers(self, status: Status, details: Sequence[Any]) -> Any:
        """The details of a status, as the trailer that carries them."""
        rpc = self._schema.rpc
        whole = rpc.Status(code=status.code, message=status.text)
        info = rpc.ErrorInfo(reason=status.reason, domain=DOMAIN)
        if status.may_be_written:
            info.metadata["may_be_written"] = "true"
        whole.details.add().Pack(info)
        if status.retry_s is not None:
            delay = self._schema.protobuf.Duration(nanos=int(status.retry_s * 1e9))
            whole.details.add().Pack(rpc.RetryInfo(retry_delay=delay))
        if status.field:
            violation = rpc.BadRequest.FieldViolation(field=status.field, description=status.field_text)
            whole.details.add().Pack(rpc.BadRequest(field_violations=[violation]))
        for one in details:
            whole.details.add().Pack(one)
        return ((DETAILS, whole.SerializeToString()),)


class _Answering:
    """Around the service of a call: turns what it raises into the status of the call.

    The status is set, and the handler returns: `abort` would raise an exception that the call keeps, and that keeps the
    call, with what it has received, until the garbage collector finds both."""

    def __init__(self, door: GrpcDoor, context: Any) -> None:
        self._door = door
        self._context = context

    async def __aenter__(self) -> None: ...

    async def __aexit__(self, kind: object, error: BaseException | None, _: object) -> bool:
        match error:
            case None:
                return False
            case StreamGone():
                return True
            case Failed():
                self._fail(error.problem, error.details)
            case ClientError() | Fault() | Retry():
                self._fail(error, ())
            case Exception():
                self._door.bug(error)
                self._end(grpc.StatusCode.INTERNAL, "this server has a bug; its log has the details")
            case _:
                return False
        return True

    def _fail(self, problem: ClientError | Fault | Retry, details: Sequence[Any]) -> None:
        status = status_of(problem)
        self._context.set_trailing_metadata(self._door.trailers(status, details))
        self._end(CODES[status.code], status.text)

    def _end(self, code: grpc.StatusCode, text: str) -> None:
        self._door.counters.failed += 1
        self._context.set_code(code)
        self._context.set_details(text)


class _GrpcStream:
    """A `Stream` over a call of gRPC."""

    def __init__(self, door: GrpcDoor, context: Any, request_class: Any, only: bytes | None) -> None:
        self._door = door
        self._context = context
        self._request_class = request_class
        self._only = only  # the one request of a stream of responses alone
        self._is_unary = only is not None
        self.held = 0  # bytes of the last request
        self.call = _call(context)

    async def begin(self) -> None:
        """Send the headers. Else the first message would, and if it is cut off, gRPC would send them again with the
        status, and fail."""
        try:
            await self._context.send_initial_metadata(())
        except Exception as error:
            raise StreamGone from error

    async def read(self) -> Any | None:
        self._door.held(-self.held)
        self.held = 0
        data = self._only if self._is_unary else await self._next()
        self._only = None
        if data is None:
            return None
        self.held = len(data)
        self._door.held(self.held)
        self._door.check_room()
        return _parsed(self._request_class, data)

    async def _next(self) -> bytes | None:
        try:
            data: Any = await self._context.read()
        except Exception as error:
            raise StreamGone from error
        return None if data is aio.EOF else bytes(data)

    async def write(self, response: Any) -> None:
        data = response.SerializeToString()
        try:
            await self._context.write(data)
        except Exception as error:
            raise StreamGone from error
        self._door.counters.sent_bytes += len(data)


def _parsed(request_class: Any, data: bytes) -> Any:
    try:
        return request_class.FromString(data)
    except DecodeError:
        name = request_class.DESCRIPTOR.full_name
        raise Refused(Error.INVALID_REQUEST, f"read the request: {len(data)} bytes are not a valid {name}") from None


def _call(context: Any) -> Call:
    caller = Caller(host=peer_host(context.peer()), listener=GRPC_LISTENER)
    return Call(caller=caller, deadline_s=context.time_remaining())


def _is_of_interest(record: logging.LogRecord) -> bool:
    """Whether a log line of gRPC is about more than a client that did not wait for its answer."""
    return "ExecuteBatchError raised in core" not in record.getMessage()


def _exhausted(why: str) -> Refused:
    return Refused(Error.THROTTLING_QUOTA_EXCEEDED, "serve this call", why)


async def _raising(error: Exception) -> None:
    raise error


def _options(idle_ms: int) -> list[tuple[str, Any]]:
    return [
        ("grpc.so_reuseport", 0),  # else another process could listen at the same port
        ("grpc.max_receive_message_length", GRPC_MESSAGE_MAX_BYTES),
        ("grpc.max_send_message_length", -1),  # a record that is larger than clients take by default must get out
        ("grpc.http2.bdp_probe", 0),  # else the window grows to megabytes for each stream, read or not
        ("grpc.http2.lookahead_bytes", GRPC_WINDOW_BYTES),
        ("grpc.max_metadata_size", GRPC_METADATA_MAX_BYTES),
        ("grpc.absolute_max_metadata_size", GRPC_METADATA_MAX_BYTES),
        ("grpc.max_concurrent_streams", GRPC_CALLS_PER_CONNECTION_MAX),
        ("grpc.max_connection_idle_ms", min(idle_ms, 2**31 - 1)),
        ("grpc.server_handshake_timeout_ms", HANDSHAKE_MAX_MS),
        ("grpc.keepalive_time_ms", KEEPALIVE_MS),
        ("grpc.keepalive_timeout_ms", KEEPALIVE_TIMEOUT_MS),
        ("grpc.http2.min_ping_interval_without_data_ms", PING_INTERVAL_MIN_MS),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", PING_INTERVAL_MIN_MS),
    ]
