"""`tailrace.ports.net`: which addresses a listener binds when a host name has several."""

import asyncio
import errno
import logging
import socket
from collections.abc import Coroutine
from typing import Any

import pytest

from tailrace.ports.net import Listener, SystemNet

HOST = "some-host"
HERE = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0))
ELSEWHERE = (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("2001:db8::1", 0, 0, 0))  # an address of no machine
NO_FAMILY = (socket.AddressFamily.AF_X25, socket.SOCK_STREAM, 6, "", ("::1", 0))


class Greeting(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(b"hello")
        transport.close()


async def listen(port: int, *addresses: Any) -> Listener:
    """Listen on a host name that has these addresses."""

    async def resolve(host: str, port: int, **_: object) -> list[Any]:
        assert host == HOST
        return [(*one[:4], (one[4][0], port, *one[4][2:])) for one in addresses]

    asyncio.get_running_loop().getaddrinfo = resolve  # type: ignore[method-assign, assignment]
    return await SystemNet().listen(Greeting, HOST, port)


def run(work: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        runner.run(work)


async def greeting(port: int) -> bytes:
    reader, writer = await asyncio.open_connection(sock=socket.create_connection(("127.0.0.1", port)))
    try:
        return await reader.read()
    finally:
        writer.close()


@pytest.mark.parametrize("missing", [ELSEWHERE, NO_FAMILY])
def test_addresses_that_this_machine_lacks_are_left_out(missing: Any, caplog: pytest.LogCaptureFixture) -> None:
    async def check() -> None:
        for addresses in ((missing, HERE), (HERE, missing)):
            listener = await listen(0, *addresses)
            assert await greeting(listener.port) == b"hello"
            listener.close()

    with caplog.at_level(logging.WARNING):
        run(check())
    assert len(caplog.records) == 2
    assert f"not listening on {missing[4][0]}, an address of some-host: " in caplog.messages[0]


def test_without_any_address_all_are_named() -> None:
    async def check() -> None:
        with pytest.raises(OSError, match=r"2001:db8::1: .*; ::1: ") as failed:
            await listen(0, ELSEWHERE, NO_FAMILY)
        assert failed.value.errno == errno.EADDRNOTAVAIL

    run(check())


def test_a_port_in_use_on_one_address_is_an_error() -> None:
    """Clients of this name would reach another program by chance."""

    async def check() -> None:
        first = await listen(0, HERE)
        second = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.2", 0))
        with pytest.raises(OSError, match="in use") as failed:
            await listen(first.port, second, HERE)
        assert failed.value.errno == errno.EADDRINUSE
        first.close()

    run(check())
