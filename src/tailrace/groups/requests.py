"""Requests of the classic protocol (JoinGroup, SyncGroup) and their answers, independent of the wire format."""

from collections.abc import Hashable, Mapping
from typing import NamedTuple

from tailrace.model.faults import Fault
from tailrace.model.frozen import frozen

Ticket = Hashable  # the driver's handle for a request that may have to wait; names the request when it is answered


class MemberId(NamedTuple):
    """How a request identifies its member. A static member's instance id (`group.instance.id`) outlives member ids."""

    member_id: str
    instance_id: str | None = None

    def __str__(self) -> str:
        return self.member_id or self.instance_id or "(no id)"


@frozen
class JoinRequest:
    """A client wants to be in the next generation."""

    identity: MemberId  # with an empty member id if the coordinator has not assigned one
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: Mapping[str, bytes]  # metadata by protocol name, in order of preference
    id_required: bool = False  # the client understands MEMBER_ID_REQUIRED (JoinGroup version 4 and later)
    may_skip_assignment: bool = False  # the client understands `skip_assignment` (JoinGroup version 9 and later)


@frozen
class SyncRequest:
    """A member wants its assignment; the leader sends the assignments of all members."""

    identity: MemberId
    generation: int
    protocol_type: str | None = None  # None: the request's version does not have it
    protocol: str | None = None
    assignments: Mapping[str, bytes]


class JoinedMember(NamedTuple):
    """A member, as the leader of its generation gets it."""

    member_id: str
    instance_id: str | None
    metadata: bytes


@frozen
class JoinAnswer:
    """A generation, for one of its members."""

    generation: int
    protocol_type: str | None
    protocol: str | None
    leader: str
    member_id: str
    members: tuple[JoinedMember, ...] = ()  # for the leader only
    skip_assignment: bool = False


@frozen
class SyncAnswer:
    """The assignment of one member."""

    protocol_type: str | None
    protocol: str | None
    assignment: bytes


Answer = JoinAnswer | SyncAnswer | Fault
