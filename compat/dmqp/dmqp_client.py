"""A client of DMQP in one file, for copying: it needs nothing but Python.

    with Client("127.0.0.1", 8000, ca_file="tailrace-data/dmqp-certificate.pem") as client:
        client.push(7, b"two coffees")
        message = client.pop(7)         # None if the topic is empty
        if message is not None:
            print(message.timestamp, message.payload)

`DmqpError` has the status of a response, an errno of Linux. Its subclass `TryAgain` (EAGAIN) says that the server could
not serve the request now, or does not know whether it did: a push may be stored, and a pop may have taken a message
away. Many messages are pushed fast with `push_all`, which does not wait in between.
"""

import errno
import socket
import ssl
import struct
from collections.abc import Iterable
from types import TracebackType
from typing import NamedTuple

RESPONSE, PUSH, POP, PEEK, PEEK_TIMESTAMP = range(5)
PAYLOAD_MAX_BYTES = 1024 * 1024
EAGAIN, ENODATA = 11, 61  # of Linux, on every operating system
UNDER_WAY_MAX = 500  # messages that `push_all` sends before it reads an answer
HEADER = struct.Struct(">QIBBBB")


class Message(NamedTuple):
    timestamp: int  # Unix seconds, when the server got it
    payload: bytes


class DmqpError(Exception):
    """The server answered with a status that is not 0."""

    def __init__(self, status: int) -> None:
        super().__init__(f"{errno.errorcode.get(status, status)}: the server answered with status {status}")
        self.status = status


class TryAgain(DmqpError):
    """EAGAIN: not now, or with an unknown outcome."""


class Client:
    def __init__(
        self,
        host: str,
        port: int,
        *,
        ca_file: str | None = None,
        plain: bool = False,
        program_order: bool = False,
        timeout_s: float = 30.0,
    ) -> None:
        """`ca_file`: the server's certificate or its authority's; None: the authorities of the operating system.
        `plain`: without TLS. `program_order`: the headers of the original C program."""
        self._program_order = program_order
        connection = socket.create_connection((host, port), timeout_s)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if not plain:
            try:
                connection = ssl.create_default_context(cafile=ca_file).wrap_socket(connection, server_hostname=host)
            except BaseException:
                connection.close()
                raise
        self._socket = connection
        self._stream = connection.makefile("rb")

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._stream.close()
        self._socket.close()

    def push(self, topic: int, payload: bytes) -> int:
        """Store a message; returns its timestamp, once it is durable."""
        return self._call(PUSH, topic, payload).timestamp

    def push_all(self, topic: int, payloads: Iterable[bytes]) -> int:
        """Store many messages; returns how many. The first that fails raises, after the answers to the others."""
        stored = under_way = 0
        failure: DmqpError | None = None

        def read_one() -> None:
            nonlocal stored, failure
            try:
                self._response()
                stored += 1
            except DmqpError as error:
                failure = failure or error

        for payload in payloads:
            self._socket.sendall(self._request(PUSH, topic, payload))
            under_way += 1
            if under_way == UNDER_WAY_MAX:
                read_one()
                under_way -= 1
        for _ in range(under_way):
            read_one()
        if failure is not None:
            raise failure
        return stored

    def pop(self, topic: int) -> Message | None:
        """Take the next message, for good; None if the topic is empty."""
        return self._message(POP, topic)

    def peek(self, topic: int) -> Message | None:
        """Look at the next message, and leave it where it is."""
        return self._message(PEEK, topic)

    def peek_timestamp(self, topic: int) -> int | None:
        """When the next message was pushed."""
        found = self._message(PEEK_TIMESTAMP, topic)
        return None if found is None else found.timestamp

    def _message(self, method: int, topic: int) -> Message | None:
        try:
            return self._call(method, topic)
        except DmqpError as error:
            if error.status == ENODATA:
                return None
            raise

    def _call(self, method: int, topic: int, payload: bytes = b"") -> Message:
        self._socket.sendall(self._request(method, topic, payload))
        return self._response()

    def _request(self, method: int, topic: int, payload: bytes) -> bytes:
        rest = (0, method, topic, 0) if self._program_order else (method, topic, 0, 0)
        return HEADER.pack(0, len(payload), *rest) + payload

    def _response(self) -> Message:
        timestamp, length, *rest = HEADER.unpack(self._read(HEADER.size))
        method, _, status = rest[1:] if self._program_order else rest[:3]
        if method != RESPONSE or length > PAYLOAD_MAX_BYTES:
            raise ConnectionError("this is no response of DMQP: does the server use the other order of headers?")
        message = Message(timestamp, self._read(length))
        if status == EAGAIN:
            raise TryAgain(status)
        if status != 0:
            raise DmqpError(status)
        return message

    def _read(self, size: int) -> bytes:
        data = self._stream.read(size)
        if len(data) < size:
            raise ConnectionError("the server closed the connection")
        return data
