"""The callbacks for what arrives from peers: Raft messages, fetches, and lanes that come up and go down."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from tailrace.model.ids import BrokerId, TopicPartition
from tailrace.raft.messages import Message

if TYPE_CHECKING:
    from tailrace.broker.peers.accepted import PeerConnection
    from tailrace.broker.peers.lane import Lane


# Serves a peer's request: takes the broker that sent it (-1: one that asks to join) and the request, returns the
# declared answer. A `Fault` that it raises is sent as an answer with an error code.
Serve = Callable[[BrokerId, object], Awaitable[object]]


# Makes the protocol of a connection on the client lane, once its hello is accepted.
ServeClient = Callable[[], asyncio.BaseProtocol]


class PeerEvents(Protocol):
    """All methods are called from the transport's callback, so they must not block."""

    def raft_messages(self, sender: BrokerId, messages: Sequence[tuple[TopicPartition, Message]]) -> None: ...

    def fetch(self, peer: "PeerConnection", frame: memoryview, at: int, version: int, correlation_id: int) -> None:
        """A Fetch whose body begins at `at`; `frame` is invalid after the return. A WireError closes the connection."""
        ...

    def fetch_connection_lost(self, peer: "PeerConnection") -> None:
        """A fetch or catch-up lane of a peer was closed: no more requests come from it, and no answer reaches it."""
        ...

    def fetched(self, lane: "Lane", frame: memoryview) -> None:
        """An answer on a fetch or catch-up lane; `frame` begins with the correlation id and is invalid after the
        return. A WireError resets the lane."""
        ...

    def lane_up(self, lane: "Lane") -> None: ...

    def lane_down(self, lane: "Lane") -> None:
        """The lane was up and lost its connection (reset, closed, silent, or the peer's address changed); it reconnects
        by itself."""
        ...
