"""TCP connections, as asyncio transports for a `BufferedProtocol`."""

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
        """Accept no more connections; open ones stay open."""
        ...


class Net(Protocol):
    async def listen(self, factory: Callable[[], asyncio.BaseProtocol], host: str, port: int) -> Listener:
        """Accept connections; port 0: any free port. OSError if the address is not available."""
        ...

    async def connect(self, factory: Callable[[], P], host: str, port: int) -> P:
        """Open a connection and return its protocol. OSError if it cannot be opened."""
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
    """Close a connection whose sent data is not acknowledged for this long (TCP_USER_TIMEOUT).

    By default TCP retransmits for a quarter of an hour, at growing intervals: after a network failure two hosts could
    stay unable to communicate for as long again as the failure lasted. Without that option or a socket, this does
    nothing.
    """
    found = transport.get_extra_info("socket")
    option = getattr(socket, "TCP_USER_TIMEOUT", None)
    if found is not None and option is not None:
        found.setsockopt(socket.IPPROTO_TCP, option, int(seconds * 1000))
