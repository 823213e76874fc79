"""The bytes of DMQP: a message is a header of 16 bytes, in network byte order, and a payload.

    u64 timestamp (Unix seconds) · u32 length of the payload · u8 method · u8 topic id · u8 status · u8 unused

The timestamp of a message is set by the server when it is pushed. A request's timestamp and status mean nothing. The
status of a response is the number that Linux has for the error, on every operating system. The original C program puts
the last four bytes in another order: unused, method, topic id, status (`dmqp.header.order=program`).
"""

import struct
from enum import IntEnum
from typing import Final, Literal, NamedTuple

from tailrace.ports.disk import Buffer

HeaderOrder = Literal["documented", "program"]
HEADER_ORDERS: Final = ("documented", "program")
HEADER_BYTES: Final = 16
LAYOUT: Final = struct.Struct(">QIBBBB")

assert LAYOUT.size == HEADER_BYTES


class Method(IntEnum):
    RESPONSE = 0
    PUSH = 1  # append the payload to the topic
    POP = 2  # take the next message, for good
    PEEK = 3  # look at the next message
    PEEK_TIMESTAMP = 4  # only its timestamp


class Status(IntEnum):
    OK = 0
    EIO = 5  # the request cannot be served; sending it again would not help
    EAGAIN = 11  # not served, or perhaps served: send it again
    ENOSYS = 38  # there is no such method
    ENODATA = 61  # the topic is empty
    EPROTO = 71  # a response was sent to the server
    EMSGSIZE = 90  # the payload is too large


class Header(NamedTuple):
    timestamp: int
    length: int
    method: int
    topic_id: int
    status: int


class Codec:
    """Reads and writes headers in one of the two orders."""

    def __init__(self, order: HeaderOrder = "documented") -> None:
        self.order = order
        self._unused_first = order == "program"

    def header(self, data: Buffer, at: int = 0) -> Header:
        timestamp, length, a, b, c, d = LAYOUT.unpack_from(data, at)
        if self._unused_first:
            return Header(timestamp, length, b, c, d)
        return Header(timestamp, length, a, b, c)

    def encoded(self, header: Header) -> bytes:
        timestamp, length, method, topic_id, status = header
        if self._unused_first:
            return LAYOUT.pack(timestamp, length, 0, method, topic_id, status)
        return LAYOUT.pack(timestamp, length, method, topic_id, status, 0)

    def response(self, topic_id: int, status: Status, timestamp: int = 0, payload: bytes = b"") -> bytes:
        header = Header(timestamp, len(payload), Method.RESPONSE, topic_id, status)
        return self.encoded(header) + payload
