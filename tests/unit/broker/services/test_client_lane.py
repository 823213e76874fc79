"""The client lane of the peer port: a caller that gives up leaves no connection behind."""

import asyncio

import pytest

from tailrace.broker.services.cluster_net import ClusterNet
from tests.unit.broker.simulated import KAFKA_PORT, Brokers, simulated


class Watched(asyncio.BufferedProtocol):
    """A client's end of a connection."""

    def __init__(self) -> None:
        self.is_open = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.is_open = True

    def connection_lost(self, error: Exception | None) -> None:
        self.is_open = False


@simulated()
async def test_a_caller_that_gives_up_after_the_hello_leaves_no_connection(brokers: Brokers) -> None:
    net: ClusterNet = brokers[1].services.cluster_net
    before = brokers.world.network.open_connections
    made: list[Watched] = []

    async def work() -> None:
        def factory() -> Watched:
            made.append(Watched())
            connecting.cancel()  # the hello is answered, and the caller has not been told yet
            return made[-1]

        connecting = asyncio.ensure_future(net.connect(factory, "b2", KAFKA_PORT))
        with pytest.raises(asyncio.CancelledError):
            await connecting

    await brokers.machine(1).run(work())
    assert len(made) == 1
    await brokers.until(lambda: not made[0].is_open, within_seconds=5)
    await brokers.until(lambda: brokers.world.network.open_connections == before, within_seconds=5)
