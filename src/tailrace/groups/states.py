"""The states of a classic group, and the table of what leads from one to the next.

The table *is* the machine: a cause that it does not list for a state is a bug of ours. The diagram in docs/groups.md is
made from it, and every row is taken by some transcript in tests/transcripts/groups.

A generation is made in two steps. All members *join*, and say what they can do; then their leader, a client like the
others, shares out the work, and every member fetches its part: it *syncs*. Whoever comes, goes or falls silent
makes all join again.
"""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final, NamedTuple


class State(Enum):
    """In Kafka's words, which tools show."""

    EMPTY = "Empty"  # nobody is in it; it may have offsets
    PREPARING = "PreparingRebalance"  # members join
    COMPLETING = "CompletingRebalance"  # all have joined, and wait for their leader to share out the work
    STABLE = "Stable"
    DEAD = "Dead"  # removed


class Cause(Enum):
    NEEDED = "must be shared out anew"
    JOINED = "all have joined, or their time is up"
    DESERTED = "nobody has joined"
    ASSIGNED = "its leader has shared out the work"
    RENAMED = "a static member comes back as it was"
    REMOVED = "is deleted, or forgotten"


class Move(NamedTuple):
    """One row of the table, taken."""

    state: State
    cause: Cause
    to: State


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
