"""Ports reserved for brokers of this machine, also while no broker listens there.

Ports are picked below the range from which the system gives ports to outgoing connections (ephemeral ports). A port
from that range could be given away while its broker is down; a client that retries such a port again and again can
even be given it for its own end, and be connected to itself.

A port is held by a socket that is bound to it and never listens. To pick a port is to bind to it exclusively, which
fails while another socket holds it. Servers share their address (SO_REUSEADDR), so a broker can listen at a held port.
"""

import random
import socket
from contextlib import suppress
from typing import Final

LOOPBACK: Final = "127.0.0.1"
FREE_PORTS: Final = range(12_000, 32_000)
PICKS_MAX: Final = 1_000


class NoPort(OSError):
    """No free port was found."""


class HeldPorts:
    """Ports that are held until `close`."""

    def __init__(self) -> None:
        self._holding: list[socket.socket] = []

    def pick(self) -> int:
        """Hold a port at which nobody listens and that nobody holds; never an ephemeral port."""
        for port in random.sample(FREE_PORTS, PICKS_MAX):
            with suppress(OSError):
                self._hold(port, shared=False)
                return port
        raise NoPort(f"none of {PICKS_MAX} ports from {FREE_PORTS.start} to {FREE_PORTS.stop - 1} is free")

    def hold(self, port: int) -> None:
        """Keep others from picking this port. Does nothing when a server listens there already."""
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
            holding.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, True)  # lets a server listen from now on
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
