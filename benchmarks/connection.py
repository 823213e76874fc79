"""A blocking connection to a server with Kafka's framing, and the requests that prepare a run."""

import socket
import struct
import time
from typing import Final, Self

from benchmarks import frames

CONNECT_TIMEOUT_SECONDS: Final = 20.0
LEADER_TIMEOUT_SECONDS: Final = 10.0
RETRY_PAUSE_SECONDS: Final = 0.01
ALREADY_EXISTS: Final = 36


class Refused(Exception):
    """The server responded with an error code, or not at all."""


class Connection:
    """One socket, one request at a time; callers that pipeline use `socket` directly."""

    def __init__(self, host: str, port: int) -> None:
        self.socket: Final = socket.create_connection((host, port), CONNECT_TIMEOUT_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def ask(self, request: bytes | bytearray) -> memoryview:
        """The response to one request, without its size."""
        self.socket.sendall(request)
        size = struct.unpack(">i", self._exactly(frames.SIZE_BYTES))[0]
        return self._exactly(size)

    def _exactly(self, size: int) -> memoryview:
        data = memoryview(bytearray(size))
        have = 0
        while have < size:
            got = self.socket.recv_into(data[have:])
            if not got:
                raise Refused("the server closed the connection")
            have += got
        return data


def create_topic(host: str, port: int, topic: str) -> None:
    """Create a topic of one partition and wait until it has a leader."""
    with Connection(host, port) as connection:
        answer = connection.ask(frames.create_topic(topic))
        error = struct.unpack_from(">h", answer, 12 + len(frames.text(topic)))[0]
        if error not in (0, ALREADY_EXISTS):
            raise Refused(f"creating topic {topic}: error {error}")
        deadline = time.monotonic() + LEADER_TIMEOUT_SECONDS
        while (error := _end(connection, topic)[0]) != 0:
            if time.monotonic() > deadline:
                raise Refused(f"topic {topic} has no leader after {LEADER_TIMEOUT_SECONDS} s: error {error}")
            time.sleep(RETRY_PAUSE_SECONDS)


def delete_topic(host: str, port: int, topic: str) -> None:
    with Connection(host, port) as connection:
        answer = connection.ask(frames.delete_topic(topic))
        error = struct.unpack_from(">h", answer, 12 + len(frames.text(topic)))[0]
        if error:
            raise Refused(f"deleting topic {topic}: error {error}")


def init_producer(connection: Connection) -> tuple[int, int]:
    """A new producer id and its epoch; retries while the coordinator is loading."""
    deadline = time.monotonic() + LEADER_TIMEOUT_SECONDS
    while True:
        error, producer_id, epoch = struct.unpack_from(">hqh", connection.ask(frames.init_producer()), 8)
        if not error:
            return producer_id, epoch
        if time.monotonic() > deadline:
            raise Refused(f"asking for a producer id: error {error}")
        time.sleep(RETRY_PAUSE_SECONDS)


def settled_end(host: str, port: int, topic: str) -> int:
    """The end offset of a topic, once no transaction is open in it."""
    with Connection(host, port) as connection:
        deadline = time.monotonic() + LEADER_TIMEOUT_SECONDS
        while (ends := (_end(connection, topic, committed=True), _end(connection, topic)))[0] != ends[1]:
            if time.monotonic() > deadline:
                raise Refused(f"transactions are open in {topic} after {LEADER_TIMEOUT_SECONDS} s")
            time.sleep(RETRY_PAUSE_SECONDS)
        return ends[1][1]


def _end(connection: Connection, topic: str, *, committed: bool = False) -> tuple[int, int]:
    answer = connection.ask(frames.end_offset(topic, committed=committed))
    error, _, offset = struct.unpack_from(">hqq", answer, 12 + len(frames.text(topic)) + 8)
    return error, offset
