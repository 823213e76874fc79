"""Streams of bytes between hosts, as asyncio transports for a `BufferedProtocol`."""

import asyncio
from collections.abc import Callable
from typing import Protocol, TypeVar

P = TypeVar("P", bound=asyncio.BaseProtocol)

backlog_max = 4096


class Listener(Protocol):
    @property
    def port(self) -> int: ...

    def close(self) -> None:
        """Accept no more; open connections stay."""
        ...


class Net(Protocol):
    async def listen(self, factory: Callable[[], asyncio.BaseProtocol], host: str, port: int) -> Listener:
        """Accept connections; port 0 picks a free one. OSError when the address cannot be had."""
        ...

    async def connect(self, factory: Callable[[], P], host: str, port: int) -> P:
        """Open a connection and return its protocol. OSError when nobody answers."""
        ...


class SystemListener:
    def __init__(self, server: asyncio.Server) -> None:
        self._server = server

    @property
    def port(self) -> int:
        return int(self._server.sockets[0].getsockname()[1])

    def close(self) -> None:
        self._server.close()


class SystemNet:
    async def listen(self, factory: Callable[[], asyncio.BaseProtocol], host: str, port: int) -> Listener:
        server = await asyncio.get_running_loop().create_server(factory, host, port, backlog=backlog_max)
        return SystemListener(server)

    async def connect(self, factory: Callable[[], P], host: str, port: int) -> P:
        _, protocol = await asyncio.get_running_loop().create_connection(factory, host, port)
        return protocol
