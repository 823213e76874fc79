"""The driver of the client without an event loop, and its connections: for Spark's workers and the command line.

All responses of a connection share one buffer, so that reading a whole topic touches the same few megabytes of memory:
records in a response are valid until the next response is received.
"""

import ssl
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Mapping
from typing import Any, Self, TypeVar

from tailrace.client.cluster import VERSION_CAPS
from tailrace.client.driver import PortsDriver, run_blocking
from tailrace.client.exchange import FIRST_REQUEST, FIRST_VERSION, NO_CAPS, Exchange
from tailrace.client.faults import ConnectionLost, SecurityRefused
from tailrace.client.sasl import Sasl, log_in
from tailrace.model.addresses import Address
from tailrace.model.limits import FRAME_MAX_BYTES
from tailrace.ports.blocking import BlockingStream, pause
from tailrace.ports.clock import SystemClock
from tailrace.ports.randomness import SystemRandom
from tailrace.wire.framing import LENGTH_BYTES, LENGTH_LAYOUT
from tailrace.wire.primitives import WireError

T = TypeVar("T")


class BlockingConnection:
    """A connection to one broker. Several requests may be in flight; responses come in the order of the requests."""

    def __init__(
        self,
        address: Address,
        timeout_s: float,
        *,
        client_id: str = "tailrace",
        tls: ssl.SSLContext | None = None,
        caps: Mapping[int, int] = NO_CAPS,
    ) -> None:
        """Connect, and ask the broker for its versions. OSError when that fails."""
        self.address = address
        self.exchange = Exchange(str(address), client_id, caps)
        self._buffer = bytearray()
        self._stream = BlockingStream(address.host, address.port, timeout_s, tls)
        self.is_open = True
        self.answers = 0  # received so far
        self.send(FIRST_REQUEST, FIRST_VERSION)
        self.exchange.learn(self.receive())

    def version(self, api_key: int) -> int:
        return self.exchange.version(api_key)

    async def call(self, request: object) -> Any:
        return self.ask(request)

    def ask(self, request: object) -> Any:
        """Send a request and wait for its response. No other request may be in flight."""
        assert not len(self.exchange), "the response to an earlier request has not been received"
        self.send(request)
        return self._received()

    def send(self, request: object, version: int | None = None) -> None:
        """Send a request; `receive` returns its response."""
        frame = self.exchange.request(request, None, version)
        self._stream.begin()
        try:
            self._stream.send(frame)
        except OSError as error:
            raise self._lost(error) from error

    def receive(self) -> Any:
        """The response to the oldest request in flight."""
        self._stream.begin()
        return self._received()

    def _received(self) -> Any:
        """The response, within what is left of the timeout."""
        try:
            response = self.exchange.response(self._frame())[1]
        except WireError as error:
            raise self._lost(error) from None
        except OSError as error:
            raise self._lost(error) from error
        self.answers += 1
        return response

    def drain(self) -> None:
        """Receive and discard the responses to all requests in flight."""
        try:
            while len(self.exchange):
                self.receive()
        except ConnectionLost:
            pass

    def set_timeout(self, seconds: float) -> None:
        """How long each later call may take."""
        self._stream.set_timeout(seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.is_open = False
        self.exchange.abandon()
        self._stream.close()

    def _frame(self) -> memoryview:
        (size,) = LENGTH_LAYOUT.unpack(self._exactly(LENGTH_BYTES))
        if not 0 < size <= FRAME_MAX_BYTES:
            raise WireError(f"a response of {size} bytes: the server is no Kafka broker, or expects TLS")
        return self._exactly(size)

    def _exactly(self, size: int) -> memoryview:
        if size > len(self._buffer):
            self._buffer = bytearray(size)
        view = memoryview(self._buffer)[:size]
        self._stream.receive(view)
        return view

    def _lost(self, error: Exception) -> Exception:
        """Close, and return the exception to raise instead."""
        self.close()
        return ConnectionLost(f"the connection to {self.address} was lost: {error}")


class BlockingDriver(PortsDriver):
    def __init__(
        self,
        client_id: str = "tailrace",
        *,
        timeout_s: float = 30.0,
        tls: ssl.SSLContext | None = None,
        sasl: Sasl | None = None,
    ) -> None:
        super().__init__(SystemClock(), SystemRandom())
        self._client_id = client_id
        self._timeout_s = timeout_s
        self._tls = tls
        self._sasl = sasl

    async def sleep(self, seconds: float) -> None:
        pause(seconds)

    async def within(self, seconds: float, work: Coroutine[Any, Any, T]) -> T:
        return await work  # its calls have a timeout

    async def connect(self, address: Address) -> BlockingConnection:
        return self.open(address)

    def open(self, address: Address) -> BlockingConnection:
        try:
            connection = BlockingConnection(
                address, self._timeout_s, client_id=self._client_id, tls=self._tls, caps=VERSION_CAPS
            )
        except ssl.SSLCertVerificationError as error:
            raise SecurityRefused(
                f"no TLS with {address}: the certificate is refused: {error.verify_message}"
            ) from None
        if self._sasl is not None:
            try:
                run_blocking(log_in(connection.call, self._sasl, str(address), self._random))
            except BaseException:
                connection.close()
                raise
        return connection

    async def share(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> T:
        return await work()
