"""Connections between simulated machines: order, splits, delays, partitions, resets and crashes."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tailrace.ports import Ports
from tailrace.testing.simulation import Machine, World


class Plain(asyncio.Protocol):
    """Keeps what it receives."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.calls: list[str] = []
        self.lost: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
        self.stays_open_at_eof = False
        self.received = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.pieces.append(data)
        self.received.set()

    def eof_received(self) -> bool:
        self.calls.append("eof")
        return self.stays_open_at_eof

    def pause_writing(self) -> None:
        self.calls.append("pause")

    def resume_writing(self) -> None:
        self.calls.append("resume")

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set_result(exc)

    @property
    def data(self) -> bytes:
        return b"".join(self.pieces)

    async def receive(self, size: int) -> None:
        while len(self.data) < size:
            self.received.clear()
            await self.received.wait()


class Buffered(asyncio.BufferedProtocol):
    """Receives bytes in a small buffer of its own, and sends them back."""

    def __init__(self) -> None:
        self.buffer = bytearray(100)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def get_buffer(self, sizehint: int) -> bytearray:
        return self.buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.transport.write(memoryview(self.buffer)[:nbytes])
        self.buffer[:nbytes] = bytes(nbytes)  # the transport must have its own copy


class Pair:
    """A server machine `a`, a client machine `b`, and one connection from `b` to `a`."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.net = world.network
        self.a, self.b = world.machine("a"), world.machine("b")
        self.a_ports, self.b_ports = self.a.boot(), self.b.boot()
        self.accepted: list[Plain] = []

    async def connect(self) -> tuple[Plain, Plain]:
        listener = await self.a.run(self.a_ports.net.listen(self._accept, "0.0.0.0", 9092))
        near = await self.b.run(self.b_ports.net.connect(Plain, "a", listener.port))
        return near, self.accepted[-1]

    def _accept(self) -> Plain:
        self.accepted.append(Plain())
        return self.accepted[-1]


def with_pair(scenario: Callable[[Pair], Coroutine[Any, Any, None]], seed: int = 1) -> None:
    with World(seed, seconds_max=3600) as world:
        world.run(scenario(Pair(world)))


@pytest.mark.parametrize("seed", range(10))
def test_all_bytes_arrive_in_order_through_a_small_buffer_and_back(seed: int) -> None:
    async def scenario(pair: Pair) -> None:
        await pair.a.run(pair.a_ports.net.listen(Buffered, "a", 1))
        near = await pair.b.run(pair.b_ports.net.connect(Plain, "a", 1))
        sent = pair.world.random.randbytes(50_000)
        for start in range(0, len(sent), 700):
            near.transport.writelines([sent[start : start + 300], memoryview(sent)[start + 300 : start + 700]])
        await near.receive(len(sent))
        assert near.data == sent

    with_pair(scenario, seed)


def test_bytes_are_split_and_joined_anywhere() -> None:
    async def scenario(pair: Pair) -> None:
        near, far = await pair.connect()
        for _ in range(100):
            for _ in range(5):
                near.transport.write(b"0123456789")
            await asyncio.sleep(0.001)
        await far.receive(5000)
        sizes = [len(piece) for piece in far.pieces]
        assert any(size < 10 for size in sizes)
        assert any(size > 10 for size in sizes)
        assert any(size % 10 for size in sizes)
        assert far.data == b"0123456789" * 500

    with_pair(scenario)


def test_both_ends_know_their_addresses() -> None:
    async def scenario(pair: Pair) -> None:
        near, far = await pair.connect()
        assert near.transport.get_extra_info("peername") == ("a", 9092)
        assert far.transport.get_extra_info("peername") == near.transport.get_extra_info("sockname")

    with_pair(scenario)


def test_closing_sends_what_was_written_and_closes_both_ends() -> None:
    async def scenario(pair: Pair) -> None:
        near, far = await pair.connect()
        near.transport.write(b"x" * 1_000_000)
        near.transport.close()
        assert near.transport.is_closing()
        assert await near.lost is None
        assert await far.lost is None
        assert len(far.data) == 1_000_000
        assert far.calls == ["eof"]
        assert pair.net.open_connections == 0

    with_pair(scenario)


def test_half_a_connection_can_be_closed() -> None:
    async def scenario(pair: Pair) -> None:
        near, far = await pair.connect()
        far.stays_open_at_eof = True
        near.transport.write(b"question")
        near.transport.write_eof()
        await far.receive(8)
        await pair.world.until(lambda: far.calls == ["eof"])
        far.transport.write(b"answer")
        await near.receive(6)
        far.transport.close()
        assert (await near.lost, await far.lost) == (None, None)
        assert far.calls == ["eof"]

    with_pair(scenario)


def test_an_abort_resets_the_peer() -> None:
    async def scenario(pair: Pair) -> None:
        near, far = await pair.connect()
        near.transport.abort()
        assert await near.lost is None
        assert isinstance(await far.lost, ConnectionResetError)

    with_pair(scenario)


def test_a_paused_reader_pauses_the_writer() -> None:
    async def scenario(pair: Pair) -> None:
        near, far = await pair.connect()
        far.transport.pause_reading()
        for number in range(100):
            near.transport.write(bytes([number]) * 10_000)
        await asyncio.sleep(10)
        assert near.calls == ["pause"]
        assert far.pieces == []
        assert near.transport.get_write_buffer_size() > 500_000
        far.transport.resume_reading()
        await far.receive(1_000_000)
        assert far.data == b"".join(bytes([number]) * 10_000 for number in range(100))
        assert near.calls == ["pause", "resume"]

    with_pair(scenario)


def test_a_connection_without_a_listener_is_refused() -> None:
    async def scenario(pair: Pair) -> None:
        connect = pair.b_ports.net.connect
        with pytest.raises(ConnectionRefusedError):
            await pair.b.run(connect(Plain, "a", 1))
        await pair.a.run(pair.a_ports.net.listen(Plain, "127.0.0.1", 1))
        with pytest.raises(ConnectionRefusedError):  # bound to the loopback address only
            await pair.b.run(connect(Plain, "a", 1))
        await pair.a.run(pair.a_ports.net.connect(Plain, "localhost", 1))
        with pytest.raises(OSError, match="in use"):
            await pair.a.run(pair.a_ports.net.listen(Plain, "a", 1))
        with pytest.raises(OSError, match="No route"):
            await pair.b.run(connect(Plain, "nowhere", 1))

    with_pair(scenario)


def test_a_closed_listener_keeps_its_connections() -> None:
    async def scenario(pair: Pair) -> None:
        listener = await pair.a.run(pair.a_ports.net.listen(Buffered, "a", 0))
        near = await pair.b.run(pair.b_ports.net.connect(Plain, "a", listener.port))
        listener.close()
        near.transport.write(b"still here")
        await near.receive(10)
        with pytest.raises(ConnectionRefusedError):
            await pair.b.run(pair.b_ports.net.connect(Plain, "a", listener.port))

    with_pair(scenario)


def test_bytes_arrive_after_a_short_partition() -> None:
    async def scenario(pair: Pair) -> None:
        near, far = await pair.connect()
        pair.net.cut("a", "b")
        near.transport.write(b"patience")
        await asyncio.sleep(4)
        assert far.pieces == []
        pair.net.heal()
        await far.receive(8)
        assert far.data == b"patience"

    with_pair(scenario)


def test_a_long_partition_times_out_the_connection_at_both_ends() -> None:
    async def scenario(pair: Pair) -> None:
        near, far = await pair.connect()
        pair.net.isolate("a")
        near.transport.write(b"never heard")
        assert isinstance(await near.lost, TimeoutError)
        assert isinstance(await far.lost, TimeoutError)
        with pytest.raises(TimeoutError):
            await pair.b.run(pair.b_ports.net.connect(Plain, "a", 9092))
        pair.net.heal("a")
        await pair.b.run(pair.b_ports.net.connect(Plain, "a", 9092))
        assert far.pieces == []

    with_pair(scenario)


def test_a_one_way_cut_does_not_affect_the_other_direction() -> None:
    async def scenario(pair: Pair) -> None:
        near, far = await pair.connect()
        pair.net.cut("b", "a", one_way=True)
        near.transport.write(b"lost")
        far.transport.write(b"heard")
        await near.receive(5)
        assert far.pieces == []

    with_pair(scenario)


def test_connections_can_be_reset() -> None:
    async def scenario(pair: Pair) -> None:
        near, far = await pair.connect()
        assert pair.net.reset("b", "a") == 1
        assert isinstance(await near.lost, ConnectionResetError)
        assert isinstance(await far.lost, ConnectionResetError)

    with_pair(scenario)


def test_a_killed_process_resets_connections_and_a_machine_without_power_does_not_answer() -> None:
    async def scenario(pair: Pair) -> None:
        loop = pair.world.loop
        near, _ = await pair.connect()
        pair.a.crash(power_loss=False)
        assert isinstance(await near.lost, ConnectionResetError)
        assert loop.time() < 2
        with pytest.raises(ConnectionRefusedError):
            await pair.b.run(pair.b_ports.net.connect(Plain, "a", 9092))

        pair.a_ports = pair.a.boot()
        near, _ = await pair.connect()
        began = loop.time()
        pair.a.crash(power_loss=True)
        assert isinstance(await near.lost, TimeoutError)
        assert loop.time() - began > 4
        with pytest.raises(TimeoutError):
            await pair.b.run(pair.b_ports.net.connect(Plain, "a", 9092))

    with_pair(scenario)


def test_bytes_for_a_rebooted_machine_are_answered_with_a_reset() -> None:
    async def scenario(pair: Pair) -> None:
        near, _ = await pair.connect()
        pair.a.crash(power_loss=True)
        near.transport.write(b"anyone?")
        await asyncio.sleep(1)
        pair.a.boot()
        assert isinstance(await near.lost, ConnectionResetError)

    with_pair(scenario)


def test_a_paused_process_accepts_a_connection_after_it_resumes() -> None:
    async def scenario(pair: Pair) -> None:
        await pair.connect()
        pair.a.pause()
        near = await pair.b.run(pair.b_ports.net.connect(Plain, "a", 9092))
        near.transport.write(b"wake up")
        await asyncio.sleep(60)
        assert len(pair.accepted) == 1
        pair.a.resume()
        await pair.world.until(lambda: len(pair.accepted) == 2)
        await pair.accepted[1].receive(7)

    with_pair(scenario)


async def _connect_and_cancel(machine: Machine, ports: Ports) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.0005):
            await ports.net.connect(Plain, "a", 9092)


@pytest.mark.parametrize("seed", range(20))
def test_a_cancelled_connect_leaves_no_connection(seed: int) -> None:
    async def scenario(pair: Pair) -> None:
        near, _ = await pair.connect()
        pair.net.cut("a", "b")
        await pair.b.run(_connect_and_cancel(pair.b, pair.b_ports))
        pair.net.heal()
        await asyncio.sleep(5)
        assert pair.net.open_connections == 1
        near.transport.abort()

    with_pair(scenario, seed)
