"""Streams of bytes between hosts, as asyncio transports for a `BufferedProtocol`."""

import asyncio
import socket
from collections.abc import Callable
from typing import Final, Protocol, TypeVar

P = TypeVar("P", bound=asyncio.BaseProtocol)

BACKLOG_MAX: Final = 4096


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
        server = await asyncio.get_running_loop().create_server(factory, host, port, backlog=BACKLOG_MAX)
        return SystemListener(server)

    async def connect(self, factory: Callable[[], P], host: str, port: int) -> P:
        _, protocol = await asyncio.get_running_loop().create_connection(factory, host, port)
        return protocol


def give_up_after(transport: asyncio.BaseTransport, seconds: float) -> None:
    """Fail a connection when what was sent on it does not arrive for so long.

    TCP would try for a quarter of an hour, at ever longer intervals: for as long again as a network was down, two
    hosts would not hear each other. Where the system has no such option, or there is no socket, nothing changes.
    """
    found = transport.get_extra_info("socket")
    option = getattr(socket, "TCP_USER_TIMEOUT", None)
    if found is not None and option is not None:
        found.setsockopt(socket.IPPROTO_TCP, option, int(seconds * 1000))
