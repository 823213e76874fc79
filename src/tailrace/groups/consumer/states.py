"""The states of a member of a consumer group (KIP-848), and the table of transitions between them.

The table *is* the state machine: a step that is not listed for a state is a bug. The diagram in docs/groups.md is
generated from it, and the transcripts in tests/transcripts/consumer_groups take every row.

The coordinator computes a *target assignment* for the whole group, and reconciles each member with it on its own, by
heartbeats. A member first revokes the partitions that are not in its target and acknowledges that. Only then does it
enter the target's epoch and get the partitions that are free; for partitions that other members have not revoked it
waits. So a partition never has two owners, and a member never stops consuming partitions that it keeps.
"""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final

from tailrace.model.transitions import Transition


class MemberState(Enum):
    STABLE = "Stable"  # owns its target assignment, as of its epoch
    UNREVOKED = "Unrevoked"  # was asked to revoke partitions and has not acknowledged that
    UNRELEASED = "Unreleased"  # waits for partitions that other members have not released


STATE_NUMBERS: Final = MappingProxyType(
    {MemberState.STABLE: 0, MemberState.UNREVOKED: 1, MemberState.UNRELEASED: 2}
)  # as in Kafka's records
STATES_BY_NUMBER: Final = MappingProxyType({number: state for state, number in STATE_NUMBERS.items()})


class Step(Enum):
    REVOKE = "must revoke partitions"
    WAIT = "gets the free partitions and waits for the others"
    SETTLE = "gets its whole target assignment"


MemberMove = Transition[MemberState, Step]


STEPS: Final[Mapping[tuple[MemberState, Step], MemberState]] = MappingProxyType(
    {
        (state, step): to
        for state in MemberState
        for step, to in (
            (Step.REVOKE, MemberState.UNREVOKED),
            (Step.WAIT, MemberState.UNRELEASED),
            (Step.SETTLE, MemberState.STABLE),
        )
    }
)


class GroupState(Enum):
    """The state of a group, by Kafka's names. It is derived from the members and not stored."""

    EMPTY = "Empty"  # no members; there may be offsets
    ASSIGNING = "Assigning"  # the next heartbeat computes a new target assignment
    RECONCILING = "Reconciling"  # a member has not reached the target assignment
    STABLE = "Stable"
