"""One process's way to the network: `ports.net.Net` without sockets."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from tailrace.testing.simulation.incarnation import Incarnation
from tailrace.testing.simulation.network import Network

P = TypeVar("P", bound=asyncio.BaseProtocol)


class SimListener:
    def __init__(self, network: Network, process: Incarnation, port: int) -> None:
        self._network = network
        self._process = process
        self._port = port

    @property
    def port(self) -> int:
        return self._port

    def close(self) -> None:
        self._process.check()
        self._network.stop_listening(self._process.name, self._port)


class SimNet:
    def __init__(self, network: Network, process: Incarnation) -> None:
        self._network = network
        self._process = process

    async def listen(self, factory: Callable[[], asyncio.BaseProtocol], host: str, port: int) -> SimListener:
        self._process.check()
        return SimListener(self._network, self._process, self._network.listen(self._process, factory, host, port))

    async def connect(self, factory: Callable[[], P], host: str, port: int) -> P:
        self._process.check()
        opening = self._network.connect(self._process, host, port)
        try:
            endpoint = await opening
        except asyncio.CancelledError:
            if opening.done() and not opening.cancelled() and opening.exception() is None:
                opening.result().abort()
            raise
        protocol = factory()
        endpoint.start(protocol)
        return protocol
