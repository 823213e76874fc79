"""What a member of a consumer group says in a heartbeat, and what it is told."""

from typing import Final

from tailrace.groups.consumer.member import AWAY
from tailrace.groups.consumer.shares import Share
from tailrace.groups.requests import MemberId
from tailrace.model.faults import InvalidRequest, UnsupportedAssignor
from tailrace.model.frozen import frozen

JOINING: Final = 0  # instead of an epoch
LEAVING: Final = -1
AS_BEFORE: Final = -1  # a rebalance timeout that is not said again


@frozen
class Heartbeat:
    """None: as before."""

    who: MemberId
    epoch: int  # the member's; 0: it joins, -1: it leaves, -2: it leaves for a while
    client_id: str = ""
    client_host: str = ""
    rack_id: str | None = None
    rebalance_timeout_ms: int = AS_BEFORE
    names: tuple[str, ...] | None = None  # of the topics that it reads
    expression: str | None = None  # which matches the names of more; empty: of none
    assignor: str | None = None
    owned: Share | None = None  # what it has

    @property
    def is_full(self) -> bool:
        """It says all there is to say, as after an error: it may not know what it was told last."""
        says_topics = self.names is not None or self.expression is not None
        return self.epoch == JOINING or (
            self.rebalance_timeout_ms != AS_BEFORE and says_topics and self.owned is not None
        )


@frozen
class HeartbeatAnswer:
    """What a member is told."""

    member_id: str
    epoch: int
    interval_ms: int = 0  # until its next heartbeat
    assigned: Share | None = None  # all that it has from now on; None: as before


def check(beat: Heartbeat, assignors: tuple[str, ...]) -> None:
    """Kafka's rules for the request itself."""
    for name, text in (("instance id", beat.who.instance_id), ("rack id", beat.rack_id)):
        if text == "":
            raise InvalidRequest(f"an empty {name}: leave it out")
    if not beat.who.member_id:
        raise InvalidRequest("a member needs an id")
    if beat.epoch == JOINING:
        _check_joining(beat)
    elif beat.epoch == AWAY and beat.who.instance_id is None:
        raise InvalidRequest("only a static member can leave for a while: it needs an instance id")
    elif beat.epoch < AWAY:
        raise InvalidRequest(f"there is no member epoch {beat.epoch}")
    if beat.assignor is not None and beat.assignor not in assignors:
        raise UnsupportedAssignor(f"work is not shared out by {beat.assignor!r} here, only by {', '.join(assignors)}")


def _check_joining(beat: Heartbeat) -> None:
    if beat.rebalance_timeout_ms == AS_BEFORE:
        raise InvalidRequest("who joins must say how long it may take to give partitions up")
    if beat.owned != ():
        raise InvalidRequest("who joins must say that it has no partitions")
    if beat.names is None and beat.expression is None:
        raise InvalidRequest("who joins must say what it reads, by names or by a regular expression")
