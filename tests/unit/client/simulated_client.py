"""A client of simulated brokers, on a machine of its own."""

from collections.abc import Coroutine
from typing import Any, TypeVar

from tailrace.client.asyncio_driver import AsyncioDriver
from tailrace.client.cluster import Cluster, Limits
from tailrace.model.addresses import Address
from tailrace.testing.simulation import World

T = TypeVar("T")

QUICK = Limits(request_s=3.0, retry_s=20.0)


class SimulatedClient:
    def __init__(self, world: World, bootstrap: str, limits: Limits = QUICK, name: str = "c") -> None:
        self._machine = world.machine(name)
        ports = self._machine.boot()
        addresses = [Address(host, 9092) for host in bootstrap.split(",")]
        self.cluster = Cluster(AsyncioDriver(ports.net, ports.clock, ports.random, name), addresses, limits)

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        return await self._machine.run(work)
