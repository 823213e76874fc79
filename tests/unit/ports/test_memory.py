"""`tailrace.ports.memory`: two ends in one process behave as two ends of a socket."""

import asyncio
import os
from collections.abc import Awaitable, Callable

from tailrace.ports.memory import HIGH_WATER_BYTES, MemoryTransport, connect_in_memory


class End(asyncio.Protocol):
    def __init__(self) -> None:
        self.received = bytearray()
        self.events: list[str] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, MemoryTransport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.received += data

    def eof_received(self) -> bool:
        self.events.append("eof")
        return False

    def pause_writing(self) -> None:
        self.events.append("pause")

    def resume_writing(self) -> None:
        self.events.append("resume")

    def connection_lost(self, error: Exception | None) -> None:
        self.events.append("lost" if error is None else type(error).__name__)


class BufferedEnd(End, asyncio.BufferedProtocol):
    """Reads into a small buffer that it uses again."""

    def __init__(self) -> None:
        super().__init__()
        self._buffer = bytearray(10)

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.received += self._buffer[:nbytes]


async def turns(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def pair(near: type[End] = End, far: type[End] = End) -> tuple[End, End]:
    ends: list[End] = []

    def make_far() -> End:
        ends.append(far())
        return ends[0]

    return connect_in_memory(near, make_far), ends[0]


def looped(test: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    def run() -> None:
        async def within() -> None:
            async with asyncio.timeout(10):
                await test()

        asyncio.run(within())

    run.__name__ = test.__name__
    return run


@looped
async def test_bytes_are_delivered_later_and_in_order() -> None:
    near, far = pair(far=BufferedEnd)
    data = os.urandom(1000)
    near.transport.write(data[:600])
    near.transport.writelines([data[600:700], data[700:]])
    assert not far.received, "delivery must not run inside of a write"
    await turns(300)
    assert far.received == data


@looped
async def test_a_buffer_may_be_used_again_after_a_write() -> None:
    near, far = pair()
    buffer = bytearray(b"first")
    near.transport.write(memoryview(buffer))
    buffer[:] = b"other"
    await turns()
    assert far.received == b"first"


@looped
async def test_an_end_that_does_not_read_stops_the_other() -> None:
    near, far = pair()
    far.transport.pause_reading()
    for _ in range(5):
        near.transport.write(bytes(HIGH_WATER_BYTES // 4))
    await turns()
    assert near.events == ["pause"]
    assert not far.received
    far.transport.resume_reading()
    await turns()
    assert near.events == ["pause", "resume"]
    assert len(far.received) == 5 * (HIGH_WATER_BYTES // 4)


@looped
async def test_a_closed_end_delivers_what_it_wrote() -> None:
    near, far = pair()
    near.transport.write(b"last words")
    near.transport.close()
    near.transport.write(b"too late")
    await turns()
    assert far.received == b"last words"
    assert far.events == ["eof", "lost"]
    assert near.events == ["lost"]


@looped
async def test_an_aborted_end_loses_what_was_not_read() -> None:
    near, far = pair()
    near.transport.write(b"lost")
    near.transport.abort()
    await turns()
    assert not far.received
    assert (near.events, far.events) == (["lost"], ["ConnectionResetError"])


@looped
async def test_closing_with_unread_bytes_resets_the_writer() -> None:
    near, far = pair()
    far.transport.pause_reading()
    near.transport.write(b"never read")
    await turns()
    far.transport.close()
    await turns()
    assert near.events[-1] == "ConnectionResetError"
    assert far.events == ["lost"]


@looped
async def test_both_ends_may_close_at_once() -> None:
    near, far = pair()
    near.transport.close()
    far.transport.close()
    await turns()
    for end in (near, far):
        assert len([event for event in end.events if event != "eof"]) == 1


@looped
async def test_writes_to_a_closed_end_are_dropped() -> None:
    near, far = pair()
    far.transport.abort()
    await turns()
    near.transport.write(b"x" * 10_000_000)
    assert near.transport.get_write_buffer_size() == 0
    assert near.transport.is_closing()
