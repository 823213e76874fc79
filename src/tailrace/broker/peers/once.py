"""One call on a connection of its own, for a broker that has no `Peers` yet because it still has to join."""

import asyncio
from typing import Any

from tailrace.broker.peers.calls import Calls
from tailrace.broker.peers.outgoing import OutgoingConnection, open_connection
from tailrace.broker.peers.unreachable import Unreachable
from tailrace.cluster.features import FIRST_LEVEL, message_version
from tailrace.model.limits import PEER_CONTROL_UNSENT_MAX_BYTES
from tailrace.ports import Net
from tailrace.wire.messages.peers.hello import PeerHello


class _SingleCall:
    """The one call of a connection."""

    def __init__(self, request: object) -> None:
        self._calls = Calls()
        version = message_version(FIRST_LEVEL, type(request).__name__)  # the level in force is not known before joining
        _, self._frame, self.answer = self._calls.ask(request, version, now=0.0)

    def opened(self, connection: OutgoingConnection) -> None:
        connection.send([self._frame])

    def answered(self, frame: memoryview) -> None:
        self._calls.answered(frame, now=0.0)

    def lost(self, why: str) -> None:
        self._calls.fail(why)


async def call_once(net: Net, host: str, port: int, hello: PeerHello, request: object, timeout_s: float) -> Any:
    """Connect, send the hello, call, and close. Unreachable if no answer comes in time; Refused if the hello is."""
    call = _SingleCall(request)
    connection: OutgoingConnection | None = None
    try:
        async with asyncio.timeout(timeout_s):
            connection = await open_connection(
                net, host, port, lambda: OutgoingConnection(hello, call, PEER_CONTROL_UNSENT_MAX_BYTES, _level_unknown)
            )
            return await call.answer
    except TimeoutError:
        raise Unreachable(f"{host}:{port} did not answer within {timeout_s} s") from None
    finally:
        if connection is not None:
            connection.close()


def _level_unknown() -> None:
    """A broker that has not joined does not know the level of metadata.version in force."""
