"""The states of a share group (KIP-932), and the table of transitions between them.

The table *is* the state machine: a cause that is not listed for a state is a bug. The diagram in docs/groups.md is
generated from it, and the transcripts in tests/transcripts/share_groups take every row.

Members do not hand partitions over to each other: several may read one partition, so a new assignment takes effect at
each member's next heartbeat, and there is no rebalance to wait for. That is why the table is so short.
"""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final

from tailrace.model.transitions import Transition


class GroupState(Enum):
    """By Kafka's names, which tools show."""

    EMPTY = "Empty"  # no members; there may be share state
    STABLE = "Stable"
    DEAD = "Dead"  # deleted


class Cause(Enum):
    JOINED = "is joined by a member"
    LEFT = "is left by a member"
    DESERTED = "is left by its last member"
    DELETED = "is deleted"


ShareMove = Transition[GroupState, Cause]


TRANSITIONS: Final[Mapping[tuple[GroupState, Cause], GroupState]] = MappingProxyType(
    {
        (GroupState.EMPTY, Cause.JOINED): GroupState.STABLE,
        (GroupState.EMPTY, Cause.DELETED): GroupState.DEAD,
        (GroupState.STABLE, Cause.JOINED): GroupState.STABLE,
        (GroupState.STABLE, Cause.LEFT): GroupState.STABLE,
        (GroupState.STABLE, Cause.DESERTED): GroupState.EMPTY,
    }
)
