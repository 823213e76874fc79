"""The states of a classic group, and the table of transitions between them.

The table *is* the state machine: a cause that is not listed for a state is a bug. The diagram in docs/groups.md is
generated from it, and the transcripts in tests/transcripts/groups take every row.

A rebalance makes a new generation in two steps. First all members *join*, with the protocols (assignors) that they
support. Then the leader, which is one of the members, computes the assignment, and every member fetches its own: it
*syncs*. A member that joins, leaves or fails causes the next rebalance.
"""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final

from tailrace.model.transitions import Transition


class State(Enum):
    """By Kafka's names, which tools show."""

    EMPTY = "Empty"  # no members; there may be offsets
    PREPARING = "PreparingRebalance"  # members join
    COMPLETING = "CompletingRebalance"  # all have joined and wait for the leader's assignment
    STABLE = "Stable"
    DEAD = "Dead"  # removed


class Cause(Enum):
    NEEDED = "needs a rebalance"
    JOINED = "has been joined by all members, or the rebalance timeout expired"
    DESERTED = "has been joined by no member"
    ASSIGNED = "gets the assignment from its leader"
    RENAMED = "is rejoined by a static member with a new member id"
    REMOVED = "is deleted or expires"


Move = Transition[State, Cause]


TRANSITIONS: Final[Mapping[tuple[State, Cause], State]] = MappingProxyType(
    {
        (State.EMPTY, Cause.NEEDED): State.PREPARING,
        (State.EMPTY, Cause.REMOVED): State.DEAD,
        (State.PREPARING, Cause.JOINED): State.COMPLETING,
        (State.PREPARING, Cause.DESERTED): State.EMPTY,
        (State.COMPLETING, Cause.ASSIGNED): State.STABLE,
        (State.COMPLETING, Cause.NEEDED): State.PREPARING,
        (State.STABLE, Cause.NEEDED): State.PREPARING,
        (State.STABLE, Cause.RENAMED): State.STABLE,
    }
)
