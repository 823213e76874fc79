"""One end of a simulated TCP connection: an asyncio transport.

Kernel events (bytes that arrive, a reset, a timeout) belong to no process. The calls to the protocol that follow from
them are scheduled in the context of the endpoint's process, so that a pause holds them and a crash drops them.
Bytes are copied when they are written. `_arrived` is the socket's receive buffer; the buffer of a `BufferedProtocol` is
filled only when the process reads. An exception in a protocol fails the run, where real asyncio would log it and close
the connection.
"""

import asyncio
import random
from collections.abc import Callable, Iterable
from typing import Any, Final

from tailrace.testing.simulation.link import END_OF_STREAM, RESET, Link, TcpFlag
from tailrace.testing.simulation.loop import SimLoop
from tailrace.testing.simulation.process import SimProcess
from tailrace.testing.simulation.trace import fingerprint

READ_MAX_BYTES: Final = 256 * 1024
HIGH_WATER_BYTES: Final = 64 * 1024

Address = tuple[str, int]


class Endpoint(asyncio.Transport):
    def __init__(
        self,
        loop: SimLoop,
        rng: random.Random,
        process: SimProcess,
        link: Link,
        addresses: tuple[Address, Address],
        on_lost: Callable[[], None],
        trace: Callable[..., None],
    ) -> None:
        super().__init__({"sockname": addresses[0], "peername": addresses[1]})
        self._addresses = tuple(f"{host}:{port}" for host, port in addresses)  # for the trace
        self.process = process
        self.link = link  # towards the peer
        self.peer: Endpoint | None = None
        self.lost = False
        self._loop = loop
        self._rng = rng
        self._context = process.context.copy()
        self._on_lost = on_lost
        self._trace = trace
        self._protocol: asyncio.BaseProtocol | None = None
        self._arrived = bytearray()
        self._ending: TcpFlag | OSError | None = None  # to be delivered after the last byte of `_arrived`
        self._outgoing = bytearray()
        self._high, self._low = HIGH_WATER_BYTES, HIGH_WATER_BYTES // 4
        self._writing_paused = False
        self._reading_paused = False
        self._read_scheduled = False
        self._closing = False
        self._eof_written = False  # write_eof was called
        self._fin_sent = False

    def start(self, protocol: asyncio.BaseProtocol) -> None:
        """Connect the protocol to the transport; called in the context of the process."""
        self._protocol = protocol
        protocol.connection_made(self)
        self._schedule_read()

    def accept(self, factory: Callable[[], asyncio.BaseProtocol]) -> None:
        self._loop.call_soon(lambda: self.start(factory()), context=self._context)

    # Kernel events

    def arrive(self, item: bytes | TcpFlag) -> None:
        if self.lost or not self.process.alive:
            self._consumed(len(item) if isinstance(item, bytes) else 0)
            if isinstance(item, bytes):
                self.link.send(RESET)  # as a kernel does when the socket no longer exists
            return
        if isinstance(item, bytes):
            self._arrived += item
        elif item is RESET:
            self.fail(ConnectionResetError("connection reset by peer"), keep_unread=self._rng.random() < 0.5)
            return
        else:
            self._ending = item
        self._schedule_read()

    def fail(self, error: OSError, *, keep_unread: bool = False) -> None:
        """End the connection with an error; with `keep_unread` the process first reads what has arrived."""
        if self.lost:
            return
        if keep_unread and self._arrived and not self._reading_paused and not self._closing:
            self._ending = error
            self._schedule_read()
        else:
            self._lose(error)

    def process_died(self) -> None:
        """After kill -9 the kernel drops what was not sent, may lose what is in flight, and resets the connection."""
        self._outgoing.clear()
        self.lost = True
        self._on_lost()
        if self._rng.random() < 0.5:
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
        self._loop.call_soon(self._report_lost, error, context=self._context)

    def _report_lost(self, error: OSError | None) -> None:
        self._trace("lost", *self._addresses, type(error).__name__)
        if self._protocol is not None:
            self._protocol.connection_lost(error)

    def _consumed(self, size: int) -> None:
        """Bytes have left the receive buffer, so the peer may send more."""
        if self.peer is not None and size:
            self.peer.link.unread_bytes -= size
            self.peer.pump()

    def pump(self) -> None:
        """Send what fits into the window; then send FIN, if the process is done writing."""
        while self._outgoing and self.link.room > 0 and not self.lost:
            size = self.link.piece(len(self._outgoing))
            self.link.send(bytes(self._outgoing[:size]))
            del self._outgoing[:size]
        if self._writing_paused and len(self._outgoing) <= self._low:
            self._writing_paused = False
            self._loop.call_soon(self._resume_writing, context=self._context)
        if not self._outgoing and not self.lost:
            if self._closing and self._arrived:
                self.link.send(RESET)  # as TCP does when a socket with unread bytes is closed
            elif (self._closing or self._eof_written) and not self._fin_sent:
                self._fin_sent = True
                self.link.send(END_OF_STREAM)
            if self._closing:
                self._lose(None)

    def _resume_writing(self) -> None:
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
            self._deliver()
        elif isinstance(self._ending, OSError):
            self._lose(self._ending)
        elif self._ending is not None:
            self._ending = None
            assert isinstance(self._protocol, asyncio.Protocol | asyncio.BufferedProtocol)
            if not self._protocol.eof_received():
                self.close()
        self._schedule_read()

    def _deliver(self) -> None:
        protocol, size = self._protocol, self.link.odds.part(len(self._arrived), self._rng)
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
        self.process.check_alive()
        self._reading_paused = True

    def resume_reading(self) -> None:
        self.process.check_alive()
        self._reading_paused = False
        self._schedule_read()

    def is_reading(self) -> bool:
        return not self._reading_paused and not self._closing

    # Writing

    def write(self, data: "bytes | bytearray | memoryview[Any]") -> None:
        self.process.check_alive()
        if self._eof_written:
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
        self.process.check_alive()
        if not self._closing:
            self._eof_written = True
            self.pump()

    def get_write_buffer_size(self) -> int:
        return len(self._outgoing)

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low, self._high

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = high if high is not None else HIGH_WATER_BYTES if low is None else 4 * low
        self._low = low if low is not None else self._high // 4

    # Closing

    def close(self) -> None:
        self.process.check_alive()
        if not self._closing:
            self._closing = True
            self.pump()

    def abort(self) -> None:
        self.process.check_alive()
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
