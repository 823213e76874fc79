"""What members ask of a group, and what they are told."""

from collections.abc import Hashable, Mapping
from typing import NamedTuple

from tailrace.model.faults import Fault
from tailrace.model.frozen import frozen

Ticket = Hashable  # what the shell gave us for a request that may have to wait, to name it when it is answered


class MemberId(NamedTuple):
    """Who somebody says it is; a static member has an instance id that outlives its member ids."""

    member_id: str
    instance_id: str | None = None


@frozen
class Joining:
    """A client wants to be in the next generation."""

    who: MemberId  # without member id: it has none yet
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: Mapping[str, bytes]  # the favourite first
    id_required: bool = False  # it can come back with the id that it is given
    may_skip_assignment: bool = False  # as a leader it understands that there is nothing to share out


@frozen
class Syncing:
    """A member wants its part; the leader brings everybody's."""

    who: MemberId
    generation: int
    protocol_type: str | None = None  # None: it does not say
    protocol: str | None = None
    assignments: Mapping[str, bytes]


class JoinedMember(NamedTuple):
    """A member as the leader of its generation sees it."""

    member_id: str
    instance_id: str | None
    metadata: bytes


@frozen
class Joined:
    """A generation, to one of its members."""

    generation: int
    protocol_type: str | None
    protocol: str | None
    leader: str
    member_id: str
    members: tuple[JoinedMember, ...] = ()  # for its leader only
    skip_assignment: bool = False


@frozen
class Synced:
    """What one member gets."""

    protocol_type: str | None
    protocol: str | None
    assignment: bytes


Answer = Joined | Synced | Fault
