"""A minimal Kafka client for simulation, benchmarks and tests: one connection, responses in the order of the requests.

There are no retries, no metadata and no batching: the client sends exactly the requests it is given. Requests may be
pipelined; each `call` waits for its own response. The client uses the Net port, so it also runs on the simulated
network.
"""

import asyncio
from collections import deque
from typing import Any, NamedTuple

from tailrace.model.limits import FRAME_MAX_BYTES
from tailrace.ports import Net
from tailrace.ports.disk import Buffer
from tailrace.wire.compile import decode_whole, encode_into, is_flexible
from tailrace.wire.framing import LENGTH_BYTES, LENGTH_LAYOUT, FramedProtocol, FrameError
from tailrace.wire.headers import read_response_header, request_header
from tailrace.wire.messages import MESSAGES
from tailrace.wire.primitives import WireError
from tailrace.wire.schema import declaration


class ConnectionLost(ConnectionError):
    """The connection closed; requests without a response may or may not have been executed."""


class _Pending(NamedTuple):
    """A request that was sent and has no response yet."""

    correlation_id: int
    api_key: int
    version: int
    response: "asyncio.Future[Any]"


class WireClient(FramedProtocol):
    def __init__(self, client_id: str) -> None:
        super().__init__(FRAME_MAX_BYTES)
        self._client_id = client_id
        self._pending: deque[_Pending] = deque()  # in the order sent, which is the order of the responses
        self._correlation_id = 0  # of the newest request

    @classmethod
    async def connect(cls, net: Net, host: str, port: int, client_id: str = "tailrace-wire") -> "WireClient":
        return await net.connect(lambda: cls(client_id), host, port)

    async def call(self, request: object, version: int) -> Any:
        """Send one request and wait for its response. Raises `ConnectionLost` when the connection closes first."""
        return await self.send(request, version)

    def send(self, request: object, version: int) -> "asyncio.Future[Any]":
        """Send one request and return a future of its response. Several requests may be in flight."""
        api_key = declaration(type(request)).number
        response = self._add_pending(api_key, version)
        frame = bytearray(LENGTH_BYTES)
        flexible = is_flexible(type(request), version)
        frame += request_header(api_key, version, self._correlation_id, self._client_id, flexible)
        encode_into(frame, request, version)
        LENGTH_LAYOUT.pack_into(frame, 0, len(frame) - LENGTH_BYTES)
        self.send_raw(frame)
        return response

    def send_raw(self, data: Buffer) -> None:
        if self.transport is None:
            raise ConnectionLost("the connection is closed")
        self.transport.write(data)

    def close(self) -> None:
        if self.transport is not None:
            self.transport.close()

    def _add_pending(self, api_key: int, version: int) -> "asyncio.Future[Any]":
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        response: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if self.transport is None:
            raise ConnectionLost("the connection is closed")
        self._pending.append(_Pending(self._correlation_id, api_key, version, response))
        return response

    def frame_received(self, frame: memoryview) -> None:
        if not self._pending:
            self._fail_pending("the broker sent a response without a request")
            return
        pending = self._pending.popleft()
        response_class = MESSAGES[pending.api_key].response
        try:
            flexible = is_flexible(response_class, pending.version)
            correlation_id, at = read_response_header(frame, 0, pending.api_key, flexible)
            if correlation_id != pending.correlation_id:
                raise WireError(f"response has correlation id {correlation_id}, expected {pending.correlation_id}")
            response: Any = decode_whole(response_class, pending.version, bytes(frame), at)
        except WireError as error:
            if not pending.response.done():
                pending.response.set_exception(error)
            self._fail_pending(str(error))
            return
        if not pending.response.done():
            pending.response.set_result(response)

    def frame_refused(self, error: FrameError) -> None:
        self._fail_pending(str(error))

    def connection_lost(self, error: Exception | None) -> None:
        self._fail_pending("the broker closed the connection" if error is None else str(error))

    def _fail_pending(self, reason: str) -> None:
        """Close the connection and fail every request that has no response yet."""
        transport, self.transport = self.transport, None
        if transport is not None:
            transport.close()
        pending, self._pending = self._pending, deque()
        for one in pending:
            if not one.response.done():
                one.response.set_exception(ConnectionLost(f"no response: {reason}"))
