"""What a member of a group is, whichever protocol it speaks: a machine that sends one request at a time.

    request = member.next_request(now)      None: nothing to send before `wake_at`
    events = member.answered(response, now)     or `unanswered(now)` when no response came

Events say what changes for the application. After "assigned" it may read the partitions. After "revoked" it must stop
reading them, and may commit first; the machine goes on with heartbeats, and tells the coordinator only after `released`
was called with the event. After "lost" the partitions may have another owner already: there is nothing to wait for.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple, Protocol

from tailrace.client.faults import ClientError
from tailrace.model.frozen import frozen
from tailrace.model.ids import Id, PartitionName

Partitions = tuple[PartitionName, ...]

PAUSE_MIN_S: Final = 0.05
PAUSE_MAX_S: Final = 1.0
DOUBLINGS_MAX: Final = 10


class Event(NamedTuple):
    kind: Literal["assigned", "revoked", "lost"]
    partitions: Partitions


Events = tuple[Event, ...]


class Identity(NamedTuple):
    """How a member signs its commits: the coordinator refuses those of a former member or generation."""

    member_id: str
    epoch: int  # the generation of a classic group, else the member's epoch
    instance_id: str | None


class TopicSeen(NamedTuple):
    """A topic, as the metadata shows it."""

    id: Id
    partitions: int


Topics = Mapping[str, TopicSeen]


@frozen
class MemberOptions:
    group: str
    topics: tuple[str, ...]
    instance_id: str | None = None  # of a static member
    rebalance_timeout_ms: int = 300_000  # for a member to release what was revoked
    # The rest is for the classic protocol only, except for `server_assignor`.
    session_timeout_ms: int = 45_000  # without a heartbeat for this long, the member is removed
    heartbeat_interval_ms: int = 3_000
    assignors: tuple[str, ...] = ("range", "roundrobin")  # in order of preference
    server_assignor: str | None = None  # of the consumer protocol; None: the coordinator's first


class GroupMember(Protocol):
    @property
    def assignment(self) -> Partitions:
        """What this member owns: it is assigned, and not yet released."""
        ...

    @property
    def identity(self) -> Identity | None:
        """None while it is no member of any generation, so that it cannot commit."""
        ...

    @property
    def wake_at(self) -> float:
        """When the next request is due, unless an event or fresh metadata comes first."""
        ...

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics whose metadata this member uses."""
        ...

    @property
    def needs_topics(self) -> bool:
        """The member sends nothing before `learnt` is called with fresh metadata of `topics`."""
        ...

    @property
    def failure(self) -> ClientError | None:
        """Why it is no member and will not be one again."""
        ...

    def next_request(self, now: float) -> object | None: ...

    def answered(self, response: Any, now: float) -> Events: ...

    def unanswered(self, now: float) -> Events:
        """No response came: the coordinator may have taken the request all the same."""
        ...

    def learnt(self, topics: Topics, now: float) -> Events: ...

    def released(self, event: Event, now: float) -> Events:
        """The application has released what this event revoked. Does nothing if the partitions were lost meanwhile."""
        ...

    def leave(self) -> object | None:
        """The request that leaves the group, if one is needed; the machine has no other afterwards."""
        ...


def pause_s(failures: int) -> float:
    """How long to wait before a request is repeated: the first time not at all, then ever longer."""
    return min(PAUSE_MIN_S * 2.0 ** min(failures - 1, DOUBLINGS_MAX), PAUSE_MAX_S) if failures > 0 else 0.0
