"""A connection that becomes a client's once the hello is answered: the client lane."""

import asyncio
from collections.abc import Callable
from typing import Generic

from tailrace.broker.peers.outgoing import OutgoingConnection
from tailrace.ports.net import P


class ClientOpening(Generic[P]):
    """The `Opener` of such a connection: it passes the transport on to the protocol that `factory` makes."""

    def __init__(self, factory: Callable[[], P]) -> None:
        self._factory = factory
        self._transport: asyncio.Transport | None = None
        self.protocol: P

    def opened(self, connection: OutgoingConnection) -> None:
        self._transport = connection.release()
        self.protocol = self._factory()
        self._transport.set_protocol(self.protocol)
        self.protocol.connection_made(self._transport)

    def abandon(self) -> None:
        """The caller gave up: close a connection that was passed on meanwhile, which nobody else knows."""
        if self._transport is not None:
            self._transport.abort()

    def answered(self, frame: memoryview) -> None:
        raise AssertionError("the connection was passed on")

    def lost(self, why: str) -> None:
        raise AssertionError("the connection was passed on")
