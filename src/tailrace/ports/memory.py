"""A connection within one process: a pair of transports with memory between them in place of a socket.

It behaves as a socket does: what one end writes is copied, and delivered to the other end in a later turn of the loop,
in order; an end that does not read stops the other from writing; when one end closes, the other reads what was written
before and then the end of the stream. Both directions are bounded.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

P = TypeVar("P", bound=asyncio.BaseProtocol)

HIGH_WATER_BYTES: Final = 256 * 1024
READ_MAX_BYTES: Final = 256 * 1024


def connect_in_memory(near: Callable[[], P], far: Callable[[], asyncio.BaseProtocol], peer: str = "memory") -> P:
    """Connect two protocols; returns the near one. `peer` is what each end calls the address of the other."""
    here, there = MemoryTransport(near(), peer), MemoryTransport(far(), peer)
    here.other, there.other = there, here
    there.start()
    here.start()
    return here.protocol  # type: ignore[return-value]


class MemoryTransport(asyncio.Transport):
    """One end. `_inbox` is what the other end has written and this end has not read."""

    other: "MemoryTransport"

    def __init__(self, protocol: asyncio.BaseProtocol, peer: str) -> None:
        super().__init__({"peername": (peer, 0), "sockname": (peer, 0)})
        self.protocol = protocol
        self._loop = asyncio.get_running_loop()
        self._inbox = bytearray()
        self._high, self._low = HIGH_WATER_BYTES, HIGH_WATER_BYTES // 4
        self._reading = True
        self._read_scheduled = False
        self._writing_paused = False
        self._at_eof = False  # the other end writes no more
        self._eof_seen = False
        self._closing = False  # this end writes no more
        self._lost = False

    def start(self) -> None:
        self.protocol.connection_made(self)

    # Reading

    def _schedule_read(self) -> None:
        if not self._read_scheduled and not self._lost:
            self._read_scheduled = True
            self._loop.call_soon(self._read)

    def _read(self) -> None:
        self._read_scheduled = False
        if self._lost or not self._reading or self._closing:
            return
        if self._inbox:
            try:
                self._deliver()
            except BaseException:
                self.abort()  # as transports of sockets do
                raise
            self.other.resume_if_low()
            if self._inbox or self._at_eof:
                self._schedule_read()
        elif self._at_eof and not self._eof_seen:
            self._eof_seen = True
            assert isinstance(self.protocol, asyncio.Protocol | asyncio.BufferedProtocol)
            if not self.protocol.eof_received():
                self.close()

    def _deliver(self) -> None:
        protocol = self.protocol
        if isinstance(protocol, asyncio.BufferedProtocol):
            buffer = memoryview(protocol.get_buffer(READ_MAX_BYTES)).cast("B")
            size = min(len(buffer), len(self._inbox), READ_MAX_BYTES)
            if size == len(self._inbox):
                buffer[:size] = self._inbox
                self._inbox.clear()
            else:
                buffer[:size] = self._inbox[:size]
                del self._inbox[:size]
            buffer.release()
            protocol.buffer_updated(size)
        else:
            assert isinstance(protocol, asyncio.Protocol)
            data = bytes(self._inbox[:READ_MAX_BYTES])
            del self._inbox[:READ_MAX_BYTES]
            protocol.data_received(data)

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        self._reading = True
        self._schedule_read()

    def is_reading(self) -> bool:
        return self._reading and not self._closing

    # Writing

    def write(self, data: "bytes | bytearray | memoryview[Any]") -> None:
        if self._closing or self._lost or self.other._lost:
            return
        self.other._inbox += data
        self.other._schedule_read()
        if self.get_write_buffer_size() > self._high and not self._writing_paused:
            self._writing_paused = True
            self.protocol.pause_writing()

    def writelines(self, list_of_data: "Iterable[bytes | bytearray | memoryview[Any]]") -> None:
        self.write(b"".join(list_of_data))

    def resume_if_low(self) -> None:
        """The other end has read: let this end write again when little is unread."""
        unread = self.get_write_buffer_size()
        if self._writing_paused and unread <= self._low:
            self._writing_paused = False
            self._loop.call_soon(self._resume_writing)
        if self._closing and not unread:
            self._lose(None)

    def _resume_writing(self) -> None:
        if not self._lost:
            self.protocol.resume_writing()

    def get_write_buffer_size(self) -> int:
        return 0 if self.other._lost else len(self.other._inbox)

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low, self._high

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = high if high is not None else HIGH_WATER_BYTES if low is None else 4 * low
        self._low = low if low is not None else self._high // 4

    def can_write_eof(self) -> bool:
        return False

    # Closing

    def is_closing(self) -> bool:
        return self._closing or self._lost

    def close(self) -> None:
        """Close once the other end has read everything."""
        if not self._closing and not self._lost:
            self._closing = True
            self.other._at_eof = True
            self.other._schedule_read()
            if self.other._closing or not self.get_write_buffer_size():
                self._lose(None)  # nobody reads what is left

    def abort(self) -> None:
        """Close at once: what the other end has not read is lost."""
        if not self._lost:
            self.other._inbox.clear()
            self._lose(None)
            self.other._reset()

    def _reset(self) -> None:
        self._lose(ConnectionResetError("the other end was closed"))

    def _lose(self, error: Exception | None) -> None:
        if self._lost:
            return
        self._lost = self._closing = True
        unread = bool(self._inbox)
        self._inbox.clear()
        self._loop.call_soon(self.protocol.connection_lost, error)
        if unread or self.other._closing:
            self.other._reset()  # as TCP does: what it wrote will never be read
        else:
            self.other._at_eof = True
            self.other._schedule_read()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol
        self._schedule_read()

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self.protocol
