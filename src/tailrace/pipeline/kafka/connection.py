"""One connection to one broker. Several requests may be in flight; responses arrive in the order of the requests.

All responses share one buffer, so that reading a whole topic touches the same few megabytes of memory: the records in a
response are valid until the next call of `receive`.
"""

import socket
import ssl
from collections import deque
from typing import Any, Final

from tailrace.model.limits import FRAME_MAX_BYTES
from tailrace.pipeline.failure import NoBrokerAvailable, PipelineFailed
from tailrace.pipeline.kafka.sasl import authenticate
from tailrace.pipeline.kafka.security import SECURITY_HINT, Sasl, tls_failure
from tailrace.wire.compile import decode_whole, encode_into, is_flexible
from tailrace.wire.framing import LENGTH_BYTES, LENGTH_LAYOUT
from tailrace.wire.headers import read_response_header, request_header
from tailrace.wire.messages import MESSAGES
from tailrace.wire.messages.api_versions import ApiVersionsRequest
from tailrace.wire.primitives import WireError
from tailrace.wire.schema import declaration

CLIENT_ID: Final = "tailrace-spark"
CONNECT_TIMEOUT_S: Final = 10.0
# By API key, the newest version that identifies topics by name and takes one group per request.
HIGHEST_USED: Final = {0: 12, 1: 12, 2: 7, 3: 9, 8: 7, 9: 7, 10: 3, 22: 4, 24: 3, 25: 3, 26: 3, 28: 3}


class Connection:
    def __init__(
        self, host: str, port: int, timeout_s: float, tls: ssl.SSLContext | None = None, sasl: Sasl | None = None
    ) -> None:
        self.address = f"{host}:{port}"
        self._pending: deque[tuple[int, int, int]] = deque()  # in flight: correlation id, API key, version
        self._next_id = 0
        self._answers = 0
        self._buffer = bytearray()
        try:
            self._socket = socket.create_connection((host, port), min(timeout_s, CONNECT_TIMEOUT_S))
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if tls is not None:
                self._socket = tls.wrap_socket(self._socket, server_hostname=host)
            self._socket.settimeout(timeout_s)
        except ssl.SSLError as error:
            raise tls_failure(self.address, error) from None
        except OSError as error:
            raise NoBrokerAvailable(f"no broker at {self.address}: {error.strerror or error}") from None
        self._highest = self._ask_versions()
        if sasl is not None:
            authenticate(self.call, sasl, self.address)

    def call(self, request: object) -> Any:
        """Send a request and wait for its response. No other request may be in flight."""
        assert not self._pending, "an answer to an earlier request has not been taken"
        self.send(request)
        return self.receive()

    def send(self, request: object) -> None:
        """Send a request; `receive` returns its response."""
        key = declaration(type(request)).number
        self._send(request, key, self._version(key))

    def receive(self) -> Any:
        """The response to the oldest request in flight."""
        correlation_id, key, version = self._pending.popleft()
        response = MESSAGES[key].response
        frame = self._frame()
        self._answers += 1
        try:
            found, at = read_response_header(frame, 0, key, is_flexible(response, version))
            if found != correlation_id:
                raise WireError(f"answer {found} came where {correlation_id} was due")
            return decode_whole(response, version, frame, at)
        except WireError as error:
            self.close()
            raise NoBrokerAvailable(f"{self.address} answered what is no answer: {error}") from None

    def drain(self) -> None:
        """Receive and discard the responses to all requests in flight."""
        try:
            while self._pending:
                self.receive()
        except NoBrokerAvailable:
            self._pending.clear()

    def close(self) -> None:
        self._socket.close()

    def _ask_versions(self) -> dict[int, int]:
        key = declaration(ApiVersionsRequest).number
        self._send(ApiVersionsRequest(), key, 0)
        return {one.api_key: one.max_version for one in self.receive().api_keys}

    def _version(self, key: int) -> int:
        if key not in self._highest:
            raise NoBrokerAvailable(f"{self.address} does not serve {MESSAGES[key].name}")
        declared = MESSAGES[key].versions
        version = min(self._highest[key], HIGHEST_USED.get(key, declared.last))
        if version not in declared:
            raise NoBrokerAvailable(f"{self.address} serves {MESSAGES[key].name} only up to version {version}: too old")
        return version

    def _send(self, request: object, key: int, version: int) -> None:
        self._next_id += 1
        frame = bytearray(LENGTH_BYTES)
        frame += request_header(key, version, self._next_id, CLIENT_ID, is_flexible(type(request), version))
        encode_into(frame, request, version)
        LENGTH_LAYOUT.pack_into(frame, 0, len(frame) - LENGTH_BYTES)
        try:
            self._socket.sendall(frame)
        except OSError as error:
            raise self._lost(error) from None
        self._pending.append((self._next_id, key, version))

    def _frame(self) -> memoryview:
        (size,) = LENGTH_LAYOUT.unpack(self._exactly(LENGTH_BYTES))
        if not 0 < size <= FRAME_MAX_BYTES:
            self.close()
            raise NoBrokerAvailable(
                f"{self.address} sent a frame of {size} bytes; it may be no Kafka broker, or want TLS"
            )
        return self._exactly(size)

    def _exactly(self, size: int) -> memoryview:
        if size > len(self._buffer):
            self._buffer = bytearray(size)
        view = memoryview(self._buffer)[:size]
        got = 0
        while got < size:
            try:
                count = self._socket.recv_into(view[got:])
            except OSError as error:
                raise self._lost(error) from None
            if not count:
                raise self._lost(None)
            got += count
        return view

    def _lost(self, error: OSError | None) -> PipelineFailed:
        self.close()
        if isinstance(error, ssl.SSLError):
            return tls_failure(self.address, error)
        # A broker that requires SASL answers only ApiVersions; if it requires TLS or a certificate, not even that.
        hint = f". {SECURITY_HINT}" if self._answers <= 1 else ""
        return NoBrokerAvailable(f"the connection to {self.address} broke: {error or 'it was closed'}{hint}")
