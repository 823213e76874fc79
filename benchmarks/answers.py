"""Reading responses from a raw socket, with no more work than checking them needs."""

import socket
import struct
from typing import Final

from benchmarks.connection import Refused
from benchmarks.frames import SIZE_BYTES

RECEIVE_BYTES: Final = 256 * 1024


class Answers:
    """The responses to pipelined Produce requests: they must be in request order and without errors."""

    def __init__(self, source: socket.socket, error_at: int | None) -> None:
        self.taken = 0
        self._source: Final = source
        self._error_at: Final = error_at  # None: the server is the floor, which returns only the correlation id
        self._rest = b""

    def take(self) -> None:
        """Wait for data and count the complete responses in it."""
        received = self._source.recv(RECEIVE_BYTES)
        if not received:
            raise Refused("the server closed the connection")
        data = self._rest + received if self._rest else received
        at, end = 0, len(data)
        while end - at > SIZE_BYTES:
            size = int.from_bytes(data[at : at + SIZE_BYTES], "big")
            if end - at < SIZE_BYTES + size:
                break
            self._check(data, at + SIZE_BYTES)
            self.taken += 1
            at += SIZE_BYTES + size
        self._rest = data[at:]

    def _check(self, data: bytes, at: int) -> None:
        correlation = int.from_bytes(data[at : at + 4], "big")
        if correlation != self.taken:
            raise Refused(f"response has correlation id {correlation}, expected {self.taken}")
        if self._error_at is not None and (error := struct.unpack_from(">h", data, at + self._error_at)[0]):
            raise Refused(f"request {correlation} failed with error {error}")


def receive_answer(source: socket.socket, buffer: memoryview) -> memoryview:
    """One response without its size, as a view of the buffer, valid until the next call."""
    have, wanted = 0, SIZE_BYTES
    while have < wanted:
        got = source.recv_into(buffer[have:])
        if not got:
            raise Refused("the server closed the connection")
        have += got
        if wanted == SIZE_BYTES and have >= SIZE_BYTES:
            wanted += struct.unpack_from(">i", buffer)[0]
    return buffer[SIZE_BYTES:wanted]
