"""The interfaces between a quorum member and its broker: what it calls, and who is notified of its progress."""

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Protocol

from tailrace.model.ids import BrokerId
from tailrace.ports import Clock
from tailrace.raft.effects import Vote
from tailrace.raft.messages import Message

if TYPE_CHECKING:
    from tailrace.broker.partitions.member import QuorumMember


class MemberPorts(Protocol):
    """What a quorum member needs of its broker. No method blocks."""

    @property
    def clock(self) -> Clock: ...

    def chance(self) -> float: ...

    def spawn(self, work: Coroutine[Any, Any, None]) -> None: ...

    def store_vote(self, member: "QuorumMember", vote: Vote) -> None:
        """Store the vote soon, and call `vote_stored` when it is durable."""

    def send(self, member: "QuorumMember", message: Message) -> None: ...

    def wake(self, member: "QuorumMember") -> None:
        """Call `tick` when the replica's deadline has come."""

    def fetch_changed(self, member: "QuorumMember") -> None:
        """The replica's fetch offset, or the leader it fetches from, may have changed."""

    def fetch_again(self, member: "QuorumMember") -> None:
        """The fetched batches could not be appended: fetch them again after a while."""

    def durable_moved(self, member: "QuorumMember") -> None:
        """A follower's durable offset is ahead of what its leader knows."""


class MemberObserver(Protocol):
    """The partition that a quorum member belongs to, which answers those who wait for its progress."""

    def progressed(self) -> None:
        """An event was processed, the log has grown, or more of it is durable."""

    def high_watermark_moved(self) -> None: ...

    def role_changed(self) -> None:
        """The role, the epoch or the leader has changed: readers and producers may have to go elsewhere."""

    def leader_changed(self) -> None:
        """The role is the same, but a new leader takes reads, the leader was lost or is back, or this replica is
        offline."""

    def deposed(self) -> None:
        """This replica is no longer the leader."""

    async def losing_log(self) -> None:
        """Note durably that the replica may not vote, because its log is about to be emptied; `OSError` if it fails."""

    def became_active(self) -> None:
        """An idle leader is active again."""

    def repaired(self) -> None:
        """The replica has caught up after data loss, and votes again."""


class FollowerView(Protocol):
    """A follower's fetch session at this leader, which is notified of progress."""

    heard_at: float
    confirmed_at: float  # the latest time at which the follower is known to have been following

    @property
    def broker(self) -> BrokerId: ...

    def grew(self, member: "QuorumMember") -> None: ...

    def committed(self, member: "QuorumMember") -> None: ...

    def deposed(self, member: "QuorumMember") -> None: ...
