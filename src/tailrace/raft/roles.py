"""The roles of a replica, and the table of transitions between them.

The table *is* the state machine: a cause without a row for the current role is stale and changes nothing. The diagram
in docs/raft.md is generated from the table, and every row is taken by some transcript in tests/transcripts/raft.

An election has two steps (KIP-996). A *prospective* replica asks for pre-votes in its current epoch: would the others
vote for it? Only with a majority of pre-votes does it become a *candidate* and begin a new epoch. So a voter that was
cut off from the others, and cannot win, does not depose a healthy leader when it returns.
"""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final

from tailrace.model.transitions import Transition


class Role(Enum):
    UNATTACHED = "unattached"  # knows an epoch, but no leader in it
    FOLLOWER = "follower"
    PROSPECTIVE = "prospective"  # asks for pre-votes
    CANDIDATE = "candidate"  # has begun an epoch, voted for itself, and asks for votes
    LEADER = "leader"
    RESIGNED = "resigned"  # led in this epoch, and gave leadership up
    OBSERVER = "observer"  # fetches like a follower, but does not vote and does not count for commits


class Cause(Enum):
    HIGHER_EPOCH = "sees a higher epoch"
    LEADER_FOUND = "learns who the leader is"
    TIMEOUT = "times out without a leader"
    CAMPAIGN = "is told to start an election at once"
    PRE_VOTE_WON = "wins a majority of pre-votes"
    ELECTED = "wins a majority of votes"
    RESIGNS = "is told to resign, or hands over leadership"
    QUORUM_LOST = "has no majority fetching from it"
    REMOVED = "stops being a voter"
    ADDED = "becomes a voter"


Move = Transition[Role, Cause]


TRANSITIONS: Final[Mapping[tuple[Role, Cause], Role]] = MappingProxyType(
    {
        (Role.UNATTACHED, Cause.HIGHER_EPOCH): Role.UNATTACHED,
        (Role.UNATTACHED, Cause.LEADER_FOUND): Role.FOLLOWER,
        (Role.UNATTACHED, Cause.TIMEOUT): Role.PROSPECTIVE,
        (Role.UNATTACHED, Cause.CAMPAIGN): Role.CANDIDATE,
        (Role.UNATTACHED, Cause.RESIGNS): Role.RESIGNED,
        (Role.UNATTACHED, Cause.REMOVED): Role.OBSERVER,
        (Role.FOLLOWER, Cause.HIGHER_EPOCH): Role.UNATTACHED,
        (Role.FOLLOWER, Cause.LEADER_FOUND): Role.FOLLOWER,
        (Role.FOLLOWER, Cause.TIMEOUT): Role.PROSPECTIVE,
        (Role.FOLLOWER, Cause.CAMPAIGN): Role.CANDIDATE,
        (Role.FOLLOWER, Cause.REMOVED): Role.OBSERVER,
        (Role.PROSPECTIVE, Cause.HIGHER_EPOCH): Role.UNATTACHED,
        (Role.PROSPECTIVE, Cause.LEADER_FOUND): Role.FOLLOWER,
        (Role.PROSPECTIVE, Cause.TIMEOUT): Role.PROSPECTIVE,
        (Role.PROSPECTIVE, Cause.PRE_VOTE_WON): Role.CANDIDATE,
        (Role.PROSPECTIVE, Cause.CAMPAIGN): Role.CANDIDATE,
        (Role.PROSPECTIVE, Cause.RESIGNS): Role.RESIGNED,
        (Role.CANDIDATE, Cause.HIGHER_EPOCH): Role.UNATTACHED,
        (Role.CANDIDATE, Cause.LEADER_FOUND): Role.FOLLOWER,
        (Role.CANDIDATE, Cause.TIMEOUT): Role.PROSPECTIVE,
        (Role.CANDIDATE, Cause.ELECTED): Role.LEADER,
        (Role.CANDIDATE, Cause.RESIGNS): Role.RESIGNED,
        (Role.LEADER, Cause.HIGHER_EPOCH): Role.UNATTACHED,
        (Role.LEADER, Cause.LEADER_FOUND): Role.FOLLOWER,
        (Role.LEADER, Cause.RESIGNS): Role.RESIGNED,
        (Role.LEADER, Cause.QUORUM_LOST): Role.RESIGNED,
        (Role.LEADER, Cause.REMOVED): Role.RESIGNED,
        (Role.RESIGNED, Cause.HIGHER_EPOCH): Role.UNATTACHED,
        (Role.RESIGNED, Cause.LEADER_FOUND): Role.FOLLOWER,
        (Role.RESIGNED, Cause.TIMEOUT): Role.UNATTACHED,
        (Role.OBSERVER, Cause.HIGHER_EPOCH): Role.OBSERVER,
        (Role.OBSERVER, Cause.LEADER_FOUND): Role.OBSERVER,
        (Role.OBSERVER, Cause.TIMEOUT): Role.OBSERVER,
        (Role.OBSERVER, Cause.ADDED): Role.UNATTACHED,
    }
)
