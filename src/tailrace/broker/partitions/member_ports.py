"""What a partition's part in its quorum needs of its broker, and whom it tells of news."""

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Protocol

from tailrace.model.ids import BrokerId
from tailrace.ports import Clock
from tailrace.raft.effects import Vote
from tailrace.raft.messages import Message

if TYPE_CHECKING:
    from tailrace.broker.partitions.member import QuorumMember


class MemberPorts(Protocol):
    """What a partition needs of its broker. None of it waits."""

    @property
    def clock(self) -> Clock: ...

    def chance(self) -> float: ...

    def spawn(self, work: Coroutine[Any, Any, None]) -> None: ...

    def store_vote(self, member: "QuorumMember", vote: Vote) -> None:
        """Put it on disk, some time soon, and tell `vote_stored`."""

    def send(self, member: "QuorumMember", message: Message) -> None: ...

    def wake(self, member: "QuorumMember") -> None:
        """Call `tick` when the replica's deadline has come."""

    def fetch_changed(self, member: "QuorumMember") -> None:
        """What the replica wants to fetch, or of whom, may have changed."""

    def fetch_again(self, member: "QuorumMember") -> None:
        """What was fetched could not be taken in: ask for it again, after a while."""

    def durable_moved(self, member: "QuorumMember") -> None:
        """A follower has more on its disk than its leader knows."""

    def leader_changed(self, member: "QuorumMember") -> None: ...

    def stirred(self, member: "QuorumMember") -> None:
        """It was at rest, and is not any more."""

    def repaired(self, member: "QuorumMember") -> None:
        """It has again what it may have lost, and votes."""


class FollowerView(Protocol):
    """A peer's fetch session, which wants to know of news."""

    heard_at: float
    confirmed_at: float  # when it certainly followed yet

    @property
    def broker(self) -> BrokerId: ...

    def grew(self, member: "QuorumMember") -> None: ...

    def committed(self, member: "QuorumMember") -> None: ...

    def deposed(self, member: "QuorumMember") -> None: ...
