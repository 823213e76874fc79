"""Keepalive probes of idle connections."""

import asyncio
import socket
from typing import Any

from tailrace.ports.net import keep_alive


def test_an_idle_peer_that_is_gone_is_noticed_within_the_time() -> None:
    async def options() -> list[int]:
        opened: asyncio.Future[asyncio.BaseTransport] = asyncio.get_running_loop().create_future()

        class Accepted(asyncio.Protocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                opened.set_result(transport)

        server = await asyncio.get_running_loop().create_server(Accepted, "127.0.0.1", 0)
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        transport = await opened
        keep_alive(transport, 30.0)
        found: Any = transport.get_extra_info("socket")
        names = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE)]
        names += [(socket.IPPROTO_TCP, getattr(socket, f"TCP_KEEP{name}")) for name in ("IDLE", "INTVL", "CNT")]
        values = [found.getsockopt(*name) for name in names]
        writer.close()
        transport.close()
        server.close()
        return values

    is_on, idle_s, interval_s, count = asyncio.run(options())
    assert is_on
    assert idle_s + count * interval_s <= 30


def test_a_transport_without_a_socket_is_left_alone() -> None:
    keep_alive(asyncio.BaseTransport(), 30.0)
