"""The states of a replica, and the table of what leads from one to the next.

The table *is* the machine: a cause that it does not list for a role is stale news, and changes nothing. The diagram in
docs/raft.md is made from it, and every row is taken by some transcript in tests/transcripts/raft.

A leader is found in two steps (KIP-996). A *prospective* asks whether it would be elected, in the epoch there is; only
who gets a majority of such pre-votes becomes a *candidate*, and begins a new epoch. So a voter that was cut off, and
is sure to lose, disturbs nobody when it returns.
"""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final, NamedTuple


class Role(Enum):
    UNATTACHED = "unattached"  # knows an epoch, follows and leads nobody
    FOLLOWER = "follower"
    PROSPECTIVE = "prospective"  # asks for pre-votes: would it be elected?
    CANDIDATE = "candidate"  # has voted for itself, and asks the others to
    LEADER = "leader"
    RESIGNED = "resigned"  # led, and gave it up
    OBSERVER = "observer"  # fetches like a follower; does not stand, and does not count


class Cause(Enum):
    HIGHER_EPOCH = "sees a higher epoch"
    LEADER_FOUND = "learns who leads"
    SILENCE = "hears from no leader in time"
    CALLED = "is told to stand at once"
    PRE_VOTED = "a majority would elect it"
    ELECTED = "a majority elects it"
    RESIGNS = "is told to resign, or hands over"
    QUORUM_LOST = "no majority fetched in time"
    REMOVED = "is no voter any more"
    ADDED = "is a voter now"


class Move(NamedTuple):
    """One row of the table, taken."""

    role: Role
    cause: Cause
    to: Role


TRANSITIONS: Final[Mapping[tuple[Role, Cause], Role]] = MappingProxyType(
    {
        (Role.UNATTACHED, Cause.HIGHER_EPOCH): Role.UNATTACHED,
        (Role.UNATTACHED, Cause.LEADER_FOUND): Role.FOLLOWER,
        (Role.UNATTACHED, Cause.SILENCE): Role.PROSPECTIVE,
        (Role.UNATTACHED, Cause.CALLED): Role.CANDIDATE,
        (Role.UNATTACHED, Cause.RESIGNS): Role.RESIGNED,
        (Role.UNATTACHED, Cause.REMOVED): Role.OBSERVER,
        (Role.FOLLOWER, Cause.HIGHER_EPOCH): Role.UNATTACHED,
        (Role.FOLLOWER, Cause.LEADER_FOUND): Role.FOLLOWER,
        (Role.FOLLOWER, Cause.SILENCE): Role.PROSPECTIVE,
        (Role.FOLLOWER, Cause.CALLED): Role.CANDIDATE,
        (Role.FOLLOWER, Cause.REMOVED): Role.OBSERVER,
        (Role.PROSPECTIVE, Cause.HIGHER_EPOCH): Role.UNATTACHED,
        (Role.PROSPECTIVE, Cause.LEADER_FOUND): Role.FOLLOWER,
        (Role.PROSPECTIVE, Cause.SILENCE): Role.PROSPECTIVE,
        (Role.PROSPECTIVE, Cause.PRE_VOTED): Role.CANDIDATE,
        (Role.PROSPECTIVE, Cause.CALLED): Role.CANDIDATE,
        (Role.PROSPECTIVE, Cause.RESIGNS): Role.RESIGNED,
        (Role.CANDIDATE, Cause.HIGHER_EPOCH): Role.UNATTACHED,
        (Role.CANDIDATE, Cause.LEADER_FOUND): Role.FOLLOWER,
        (Role.CANDIDATE, Cause.SILENCE): Role.PROSPECTIVE,
        (Role.CANDIDATE, Cause.ELECTED): Role.LEADER,
        (Role.CANDIDATE, Cause.RESIGNS): Role.RESIGNED,
        (Role.LEADER, Cause.HIGHER_EPOCH): Role.UNATTACHED,
        (Role.LEADER, Cause.LEADER_FOUND): Role.FOLLOWER,
        (Role.LEADER, Cause.RESIGNS): Role.RESIGNED,
        (Role.LEADER, Cause.QUORUM_LOST): Role.RESIGNED,
        (Role.LEADER, Cause.REMOVED): Role.RESIGNED,
        (Role.RESIGNED, Cause.HIGHER_EPOCH): Role.UNATTACHED,
        (Role.RESIGNED, Cause.LEADER_FOUND): Role.FOLLOWER,
        (Role.RESIGNED, Cause.SILENCE): Role.UNATTACHED,
        (Role.OBSERVER, Cause.HIGHER_EPOCH): Role.OBSERVER,
        (Role.OBSERVER, Cause.LEADER_FOUND): Role.OBSERVER,
        (Role.OBSERVER, Cause.SILENCE): Role.OBSERVER,
        (Role.OBSERVER, Cause.ADDED): Role.UNATTACHED,
    }
)
