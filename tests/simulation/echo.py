"""A small program to test the simulator itself: clients of an echo server that keeps a journal and crashes.

Run as a module it prints the digest of one seed: `python -m tests.simulation.echo 7`.
"""

import asyncio
import sys
from functools import partial

from tailrace.ports import Ports
from tailrace.testing.simulation import World


class Echo(asyncio.BufferedProtocol):
    """Writes what it receives to its journal, syncs, and sends it back."""

    def __init__(self, ports: Ports) -> None:
        self.buffer = bytearray(64)
        self.journal = ports.disk.open("/journal")
        self.transport: asyncio.Transport
        self.received = bytearray()
        self.echoed = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def get_buffer(self, sizehint: int) -> bytearray:
        return self.buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.received += self.buffer[:nbytes]
        self.journal.write(self.buffer[:nbytes], self.journal.size())
        self.journal.sync().add_done_callback(partial(self.echo, len(self.received)))

    def echo(self, end: int, synced: "asyncio.Future[None]") -> None:
        """Syncs may end in any order; each covers all that was written before it started."""
        if end > self.echoed:
            self.transport.write(memoryview(bytes(self.received))[self.echoed : end])
            self.echoed = end


async def serve(ports: Ports) -> None:
    await ports.net.listen(lambda: Echo(ports), "0.0.0.0", 7)


async def talk(world: World, ports: Ports, machine: str) -> None:
    """Send random bytes and expect them back ten times, reconnecting when the connection is lost."""
    echoes = 0
    while echoes < 10:
        try:
            reader = asyncio.StreamReader()
            protocol = await ports.net.connect(lambda r=reader: asyncio.StreamReaderProtocol(r), "server", 7)  # type: ignore[misc]
            assert isinstance(protocol, asyncio.StreamReaderProtocol)
            transport = protocol._transport  # type: ignore[attr-defined]
            while echoes < 10:
                sent = ports.random.new_id() * ports.random.below(20)
                transport.write(sent)
                assert await reader.readexactly(len(sent)) == sent
                echoes += 1
            transport.close()
        except (OSError, asyncio.IncompleteReadError) as error:
            world.trace("retry", machine, type(error).__name__)
            await asyncio.sleep(ports.random.uniform(0, 1))
    world.trace("done", machine, ports.clock.wall_ms())


async def scenario(world: World) -> None:
    server = world.machine("server")
    clients = [world.machine(f"client-{number}") for number in range(3)]
    await server.run(serve(server.boot()))
    talking = [client.run(talk(world, client.boot(), client.name)) for client in clients]
    for power_loss in (False, True):
        await asyncio.sleep(world.random.uniform(0, 0.1))
        server.crash(power_loss=power_loss)
        await server.run(serve(server.boot()))
    world.network.cut("client-0", "server")
    await asyncio.sleep(1)
    world.network.heal()
    await asyncio.gather(*talking)


def digest(seed: int) -> str:
    with World(seed) as world:
        world.run(scenario(world))
        return world.digest


if __name__ == "__main__":
    sys.stdout.write(digest(int(sys.argv[1])) + "\n")
