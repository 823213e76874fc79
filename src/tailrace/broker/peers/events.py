"""What comes in from peers beside requests: Raft messages, fetches, and lanes that come up and go down."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from tailrace.model.ids import BrokerId, TopicPartition
from tailrace.raft.messages import Message

if TYPE_CHECKING:
    from tailrace.broker.peers.accepted import PeerConnection
    from tailrace.broker.peers.lane import Lane


# A peer's request, and the broker that sent it, -1 for a joiner, which may only ask to join. Gives the declared answer;
# a `Fault` that is raised becomes one.
Serve = Callable[[BrokerId, object], Awaitable[object]]


class PeerEvents(Protocol):
    """Each happens inside the callback that brought it."""

    def raft_messages(self, sender: BrokerId, messages: Sequence[tuple[TopicPartition, Message]]) -> None: ...

    def fetch(self, peer: "PeerConnection", frame: memoryview, at: int, version: int, correlation_id: int) -> None:
        """A Fetch whose body begins at `at`; `frame` dies on return. A WireError closes the connection."""
        ...

    def fetch_connection_lost(self, peer: "PeerConnection") -> None:
        """No Fetch comes from there any more, and no answer arrives."""
        ...

    def fetched(self, lane: "Lane", frame: memoryview) -> None:
        """An answer on a fetch or catch-up lane, from its correlation id on; `frame` dies on return. A WireError
        resets the lane."""
        ...

    def lane_up(self, lane: "Lane") -> None: ...

    def lane_down(self, lane: "Lane") -> None:
        """It was up and is lost: reset, closed, silent, or its peer has moved. It comes up again by itself."""
        ...
