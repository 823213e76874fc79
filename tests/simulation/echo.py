"""A small program for the simulator: clients that talk to an echo server, which keeps a journal, under crashes.

Run as a module it prints the digest of one seed: `python -m tests.simulation.echo 7`.
"""

import asyncio
import sys
from functools import partial

from tailrace.ports import Ports
from tailrace.testing.simulation import World


class Echo(asyncio.BufferedProtocol):
    """Sends back what it hears, and writes it down first."""

    def __init__(self, ports: Ports) -> None:
        self.buffer = bytearray(64)
        self.journal = ports.disk.open("/journal")
        self.transport: asyncio.Transport
        self.heard = bytearray()
        self.answered = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def get_buffer(self, sizehint: int) -> bytearray:
        return self.buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.heard += self.buffer[:nbytes]
        self.journal.write(self.buffer[:nbytes], self.journal.size())
        self.journal.sync().add_done_callback(partial(self.answer, len(self.heard)))

    def answer(self, end: int, synced: "asyncio.Future[None]") -> None:
        """Syncs end in any order; one covers all that was written before it started."""
        if end > self.answered:
            self.transport.write(memoryview(bytes(self.heard))[self.answered : end])
            self.answered = end


async def serve(ports: Ports) -> None:
    await ports.net.listen(lambda: Echo(ports), "0.0.0.0", 7)


async def talk(world: World, ports: Ports, machine: str) -> None:
    """Ask until ten answers came, whatever happens on the way."""
    answers = 0
    while answers < 10:
        try:
            reader = asyncio.StreamReader()
            protocol = await ports.net.connect(lambda r=reader: asyncio.StreamReaderProtocol(r), "server", 7)  # type: ignore[misc]
            assert isinstance(protocol, asyncio.StreamReaderProtocol)
            transport = protocol._transport  # type: ignore[attr-defined]
            while answers < 10:
                question = ports.random.new_id() * ports.random.below(20)
                transport.write(question)
                assert await reader.readexactly(len(question)) == question
                answers += 1
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
