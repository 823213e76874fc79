"""A raw connection on which a test sends arbitrary bytes, and a capture of the broker's log."""

import asyncio
import logging
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from tailrace.wire.compile import decode_whole, encode, is_flexible
from tailrace.wire.headers import read_response_header, request_header
from tailrace.wire.messages import MESSAGES
from tailrace.wire.schema import declaration

WAIT_MAX_S: Final = 10.0


def framed(request: object, version: int, number: int = 1) -> bytes:
    """The bytes of a request, with its length."""
    key = declaration(type(request)).number
    header = request_header(key, version, number, "hostile", is_flexible(type(request), version))
    return with_length(header + encode(request, version))


def with_length(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition that has no event to wait for."""
    async with asyncio.timeout(WAIT_MAX_S):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.001)


class Raw:
    """A client that may violate the protocol."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def connect(cls, port: int) -> "Raw":
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def answer(self) -> bytes:
        async with asyncio.timeout(WAIT_MAX_S):
            (size,) = struct.unpack(">i", await self.reader.readexactly(4))
            return await self.reader.readexactly(size)

    async def answer_to(self, key: int, version: int) -> Any:
        data = await self.answer()
        response = MESSAGES[key].response
        _, at = read_response_header(data, 0, key, is_flexible(response, version))
        decoded: Any = decode_whole(response, version, data, at)
        return decoded

    async def closed(self) -> bool:
        """Whether the broker closes the connection without a response."""
        async with asyncio.timeout(WAIT_MAX_S):
            try:
                return await self.reader.read() == b""
            except ConnectionError:
                return True

    def close(self) -> None:
        self.writer.close()


class Heard(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@contextmanager
def heard() -> Iterator[list[str]]:
    """The lines that the broker in this process logs in the block, warnings and worse."""
    handler = Heard()
    logger = logging.getLogger("tailrace")
    logger.addHandler(handler)
    try:
        yield handler.lines
    finally:
        logger.removeHandler(handler)
