"""One end of a simulated TCP connection: an asyncio transport.

What the kernel does (bytes arriving, a reset, a timeout) comes in without an owner; what the protocol hears is
scheduled in its own process's context, so that a pause holds it and a crash drops it. Bytes are copied when written.
`arrived` is the socket's receive buffer: the protocol's own buffer is filled only while it is being read. An exception
from a protocol fails the run: asyncio would log it and close the connection.
"""

import asyncio
import random
from collections.abc import Callable, Iterable
from typing import Any, Final

from tailrace.testing.simulation.incarnation import Incarnation
from tailrace.testing.simulation.link import END_OF_STREAM, RESET, Link, Mark
from tailrace.testing.simulation.loop import SimLoop
from tailrace.testing.simulation.trace import fingerprint

READ_MAX_BYTES: Final = 256 * 1024
HIGH_WATER_BYTES: Final = 64 * 1024

Address = tuple[str, int]


class Endpoint(asyncio.Transport):
    def __init__(
        self,
        loop: SimLoop,
        chance: random.Random,
        process: Incarnation,
        link: Link,
        addresses: tuple[Address, Address],
        on_lost: Callable[[], None],
        trace: Callable[..., None],
    ) -> None:
        super().__init__({"sockname": addresses[0], "peername": addresses[1]})
        self._addresses = tuple(f"{host}:{port}" for host, port in addresses)  # as the trace shows them
        self.process = process
        self.link = link  # towards the peer
        self.peer: Endpoint | None = None
        self.lost = False
        self._loop = loop
        self._chance = chance
        self._context = process.context.copy()
        self._on_lost = on_lost
        self._trace = trace
        self._protocol: asyncio.BaseProtocol | None = None
        self._arrived = bytearray()
        self._ending: Mark | OSError | None = None  # comes after the last of `arrived`
        self._outgoing = bytearray()
        self._high, self._low = HIGH_WATER_BYTES, HIGH_WATER_BYTES // 4
        self._writing_paused = False
        self._reading_paused = False
        self._read_scheduled = False
        self._closing = False
        self._end_asked = False  # write_eof was called
        self._end_sent = False

    def start(self, protocol: asyncio.BaseProtocol) -> None:
        """In the process's context: give the connection to its protocol."""
        self._protocol = protocol
        protocol.connection_made(self)
        self._schedule_read()

    def accept(self, factory: Callable[[], asyncio.BaseProtocol]) -> None:
        self._loop.call_soon(lambda: self.start(factory()), context=self._context)

    # The kernel's side

    def arrive(self, item: bytes | Mark) -> None:
        if self.lost or not self.process.alive:
            self._consumed(len(item) if isinstance(item, bytes) else 0)
            if isinstance(item, bytes):
                self.link.send(RESET)  # nobody is here to read it
            return
        if isinstance(item, bytes):
            self._arrived += item
        elif item is RESET:
            self.fail(ConnectionResetError("connection reset by peer"), keep_unread=self._chance.random() < 0.5)
            return
        else:
            self._ending = item
        self._schedule_read()

    def fail(self, error: OSError, *, keep_unread: bool = False) -> None:
        """The connection is over, from outside."""
        if self.lost:
            return
        if keep_unread and self._arrived and not self._reading_paused and not self._closing:
            self._ending = error
            self._schedule_read()
        else:
            self._lose(error)

    def process_died(self) -> None:
        """kill -9: the kernel drops what was not yet sent, and resets."""
        self._outgoing.clear()
        self.lost = True
        self._on_lost()
        if self._chance.random() < 0.5:
            self.link.drop()
        self.link.send(RESET)

    def power_cut(self) -> None:
        self._outgoing.clear()
        self.lost = True
        self._on_lost()

    def _lose(self, error: OSError | None) -> None:
        self.lost = self._closing = True
        self._on_lost()
        self._consumed(len(self._arrived))
        self._arrived.clear()
        self._outgoing.clear()
        self._loop.call_soon(self._tell_lost, error, context=self._context)

    def _tell_lost(self, error: OSError | None) -> None:
        self._trace("lost", *self._addresses, type(error).__name__)
        if self._protocol is not None:
            self._protocol.connection_lost(error)

    def _consumed(self, size: int) -> None:
        """Bytes have left the socket: the peer may send more."""
        if self.peer is not None and size:
            self.peer.link.unread_bytes -= size
            self.peer.pump()

    def pump(self) -> None:
        """Send what the window lets through."""
        while self._outgoing and self.link.room > 0 and not self.lost:
            size = self.link.piece(len(self._outgoing))
            self.link.send(bytes(self._outgoing[:size]))
            del self._outgoing[:size]
        if self._writing_paused and len(self._outgoing) <= self._low:
            self._writing_paused = False
            self._loop.call_soon(self._tell_resume, context=self._context)
        if not self._outgoing and not self.lost:
            if self._closing and self._arrived:
                self.link.send(RESET)  # as TCP does when unread bytes are thrown away
            elif (self._closing or self._end_asked) and not self._end_sent:
                self._end_sent = True
                self.link.send(END_OF_STREAM)
            if self._closing:
                self._lose(None)

    def _tell_resume(self) -> None:
        if self._protocol is not None and not self.lost:
            self._protocol.resume_writing()

    # Reading

    def _schedule_read(self) -> None:
        if self._protocol is None or self._reading_paused or self._read_scheduled or self._closing:
            return
        if self._arrived or self._ending is not None:
            self._read_scheduled = True
            self._loop.call_soon(self._read, context=self._context)

    def _read(self) -> None:
        self._read_scheduled = False
        if self._reading_paused or self._closing:
            return
        if self._arrived:
            self._hand_over()
        elif isinstance(self._ending, OSError):
            self._lose(self._ending)
        elif self._ending is not None:
            self._ending = None
            assert isinstance(self._protocol, asyncio.Protocol | asyncio.BufferedProtocol)
            if not self._protocol.eof_received():
                self.close()
        self._schedule_read()

    def _hand_over(self) -> None:
        protocol, size = self._protocol, self.link.odds.part(len(self._arrived), self._chance)
        if isinstance(protocol, asyncio.BufferedProtocol):
            buffer = memoryview(protocol.get_buffer(READ_MAX_BYTES)).cast("B")
            assert len(buffer), "get_buffer() returned an empty buffer"
            size = min(size, len(buffer))
            data = self._take(size)
            buffer[:size] = data
            buffer.release()
            protocol.buffer_updated(size)
        else:
            assert isinstance(protocol, asyncio.Protocol)
            protocol.data_received(self._take(min(size, READ_MAX_BYTES)))

    def _take(self, size: int) -> bytes:
        data = bytes(self._arrived[:size])
        del self._arrived[:size]
        self._trace("read", *self._addresses, size, fingerprint(data))
        self._consumed(size)
        return data

    def pause_reading(self) -> None:
        self.process.check()
        self._reading_paused = True

    def resume_reading(self) -> None:
        self.process.check()
        self._reading_paused = False
        self._schedule_read()

    def is_reading(self) -> bool:
        return not self._reading_paused and not self._closing

    # Writing

    def write(self, data: "bytes | bytearray | memoryview[Any]") -> None:
        self.process.check()
        if self._end_asked:
            raise RuntimeError("cannot write after write_eof()")
        if self._closing:
            return
        self._outgoing += data
        self.pump()
        if len(self._outgoing) > self._high and not self._writing_paused and self._protocol is not None:
            self._writing_paused = True
            self._protocol.pause_writing()

    def writelines(self, list_of_data: "Iterable[bytes | bytearray | memoryview[Any]]") -> None:
        self.write(b"".join(list_of_data))

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.process.check()
        if not self._closing:
            self._end_asked = True
            self.pump()

    def get_write_buffer_size(self) -> int:
        return len(self._outgoing)

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low, self._high

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = high if high is not None else HIGH_WATER_BYTES if low is None else 4 * low
        self._low = low if low is not None else self._high // 4

    # Ends

    def close(self) -> None:
        self.process.check()
        if not self._closing:
            self._closing = True
            self.pump()

    def abort(self) -> None:
        self.process.check()
        if not self.lost:
            self.link.send(RESET)
            self._lose(None)

    def is_closing(self) -> bool:
        return self._closing

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol
        self._schedule_read()

    def get_protocol(self) -> asyncio.BaseProtocol:
        assert self._protocol is not None
        return self._protocol
