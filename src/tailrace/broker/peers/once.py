"""One question to a broker by whoever has no `Peers` yet: a joiner."""

import asyncio
from typing import Any

from tailrace.broker.peers.calls import Calls
from tailrace.broker.peers.outgoing import OutgoingConnection, open_connection
from tailrace.broker.peers.unreachable import Unreachable
from tailrace.cluster.features import FIRST_LEVEL, message_version
from tailrace.model.limits import PEER_CONTROL_UNSENT_MAX_BYTES
from tailrace.ports import Net
from tailrace.wire.messages.peers.hello import PeerHello


class _Question:
    """The one call of a connection."""

    def __init__(self, request: object) -> None:
        self._calls = Calls()
        version = message_version(FIRST_LEVEL, type(request).__name__)  # which level is in force is not known yet
        _, self._frame, self.answer = self._calls.ask(request, version, now=0.0)

    def opened(self, connection: OutgoingConnection) -> None:
        connection.send([self._frame])

    def answered(self, frame: memoryview) -> None:
        self._calls.answered(frame, now=0.0)

    def lost(self, why: str) -> None:
        self._calls.fail(why)


async def call_once(net: Net, host: str, port: int, hello: PeerHello, request: object, timeout_s: float) -> Any:
    """Connect, say hello, ask, and close. Unreachable when no answer comes in time; Refused when the hello is."""
    question = _Question(request)
    connection: OutgoingConnection | None = None
    try:
        async with asyncio.timeout(timeout_s):
            connection = await open_connection(
                net, host, port, lambda: OutgoingConnection(hello, question, PEER_CONTROL_UNSENT_MAX_BYTES, _not_known)
            )
            return await question.answer
    except TimeoutError:
        raise Unreachable(f"{host}:{port} did not answer within {timeout_s} s") from None
    finally:
        if connection is not None:
            connection.close()


def _not_known() -> None:
    """The level of metadata.version in force: a broker that has not joined does not know it."""
