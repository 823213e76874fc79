"""A small Kafka client: one connection, requests out, answers back in order. For simulation, benchmarks and tests.

It knows no retries, no metadata and no batching: what is sent is what the caller says. Requests may be pipelined; each
`call` waits for its own answer. It runs wherever the Net port runs, the simulated world included.
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
    """The other side is gone; requests under way may or may not have been carried out."""


class _Expected(NamedTuple):
    """An answer that is due."""

    correlation_id: int
    api_key: int
    version: int
    done: "asyncio.Future[Any]"


class WireClient(FramedProtocol):
    def __init__(self, client_id: str) -> None:
        super().__init__(FRAME_MAX_BYTES)
        self._client_id = client_id
        self._expected: deque[_Expected] = deque()
        self._next_id = 0

    @classmethod
    async def connect(cls, net: Net, host: str, port: int, client_id: str = "tailrace-wire") -> "WireClient":
        return await net.connect(lambda: cls(client_id), host, port)

    async def call(self, request: object, version: int) -> Any:
        """Send one request and wait for its answer. `ConnectionLost` when it does not come any more."""
        return await self.send(request, version)

    def send(self, request: object, version: int) -> "asyncio.Future[Any]":
        """Send one request; the future is its answer. Several may be under way."""
        api_key = declaration(type(request)).number
        done = self._expect(api_key, version)
        frame = bytearray(LENGTH_BYTES)
        flexible = is_flexible(type(request), version)
        frame += request_header(api_key, version, self._next_id, self._client_id, flexible)
        encode_into(frame, request, version)
        LENGTH_LAYOUT.pack_into(frame, 0, len(frame) - LENGTH_BYTES)
        self.send_raw(frame)
        return done

    def send_raw(self, data: Buffer) -> None:
        if self.transport is None:
            raise ConnectionLost("the connection is closed")
        self.transport.write(data)

    def close(self) -> None:
        if self.transport is not None:
            self.transport.close()

    def _expect(self, api_key: int, version: int) -> "asyncio.Future[Any]":
        self._next_id = (self._next_id + 1) & 0x7FFFFFFF
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if self.transport is None:
            raise ConnectionLost("the connection is closed")
        self._expected.append(_Expected(self._next_id, api_key, version, done))
        return done

    def frame_received(self, frame: memoryview) -> None:
        if not self._expected:
            self._lose("an answer that nobody asked for")
            return
        expected = self._expected.popleft()
        response = MESSAGES[expected.api_key].response
        try:
            flexible = is_flexible(response, expected.version)
            correlation_id, at = read_response_header(frame, 0, expected.api_key, flexible)
            if correlation_id != expected.correlation_id:
                raise WireError(f"answer {correlation_id} came where {expected.correlation_id} was due")
            answer: Any = decode_whole(response, expected.version, bytes(frame), at)
        except WireError as error:
            if not expected.done.done():
                expected.done.set_exception(error)
            self._lose(str(error))
            return
        if not expected.done.done():
            expected.done.set_result(answer)

    def frame_refused(self, error: FrameError) -> None:
        self._lose(str(error))

    def connection_lost(self, error: Exception | None) -> None:
        self._lose("the other side closed it" if error is None else str(error))

    def _lose(self, why: str) -> None:
        transport, self.transport = self.transport, None
        if transport is not None:
            transport.close()
        expected, self._expected = self._expected, deque()
        for one in expected:
            if not one.done.done():
                one.done.set_exception(ConnectionLost(f"no answer: {why}"))
