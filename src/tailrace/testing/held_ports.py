"""Ports that are ours while we need them, whether anybody listens there at the moment or not.

They are picked below the range from which the system itself hands out ports to whoever connects: a port from there
could be taken while its broker is down. Worse, a client that knocks at such a port again and again, while nobody
listens, sooner or later is given that very port for its own end, and finds itself connected to itself.

A port is held by a socket that is bound to it and never listens. Whoever picks a port binds to it alone, and cannot
where another does so already; a server, which shares its address as servers do, can still listen there.
"""

import random
import socket
from contextlib import suppress
from typing import Final

LOOPBACK: Final = "127.0.0.1"
FREE_PORTS: Final = range(12_000, 32_000)
PICKS_MAX: Final = 1_000


class NoPort(OSError):
    """There is none to be had."""


class HeldPorts:
    """Some ports, until `close`."""

    def __init__(self) -> None:
        self._holding: list[socket.socket] = []

    def pick(self) -> int:
        """A port that nobody listens at, holds, or is given by the system."""
        for port in random.sample(FREE_PORTS, PICKS_MAX):
            with suppress(OSError):
                self._hold(port, shared=False)
                return port
        raise NoPort(f"none of {PICKS_MAX} ports from {FREE_PORTS.start} to {FREE_PORTS.stop - 1} is free")

    def hold(self, port: int) -> None:
        """Keep others from picking this one; where somebody listens already, nothing happens."""
        with suppress(OSError):
            self._hold(port, shared=True)

    def close(self) -> None:
        for one in self._holding:
            one.close()
        self._holding.clear()

    def _hold(self, port: int, *, shared: bool) -> None:
        holding = socket.socket()
        try:
            holding.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, shared)
            holding.bind((LOOPBACK, port))
            holding.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, True)  # from now on a server may come
        except OSError:
            holding.close()
            raise
        self._holding.append(holding)


def is_free(port: int) -> bool:
    """Whether a server could listen there."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True
