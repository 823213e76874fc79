"""Where a member of a consumer group (KIP-848) is on its way to what it shall have, and the table of its steps.

The table *is* the machine: a cause that it does not list for a state is a bug of ours. The diagram in docs/groups.md is
made from it, and every row is taken by some transcript in tests/transcripts/consumer_groups.

The coordinator works out a *target* for the whole group, and brings each member there on its own, by its heartbeats. A
member first gives up what it shall not have, and says so; only then it is in the target's epoch and gets what is free;
what others have not given up yet it waits for. So a partition never has two owners, and nobody stops working on
partitions that it keeps.
"""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final, NamedTuple


class MemberState(Enum):
    STABLE = "Stable"  # has all that it shall have, as far as it was told
    UNREVOKED = "Unrevoked"  # was told to give something up, and has not said that it did
    UNRELEASED = "Unreleased"  # waits for what others have still


STATE_NUMBERS: Final = MappingProxyType(
    {MemberState.STABLE: 0, MemberState.UNREVOKED: 1, MemberState.UNRELEASED: 2}
)  # Kafka's, which are in the log
STATES_BY_NUMBER: Final = MappingProxyType({number: state for state, number in STATE_NUMBERS.items()})


class Step(Enum):
    GIVE_UP = "must give something up"
    WAIT = "gets what is free, and waits for the rest"
    SETTLE = "gets all that it shall have"


class Taken(NamedTuple):
    """One row of the table, taken."""

    state: MemberState
    step: Step
    to: MemberState


STEPS: Final[Mapping[tuple[MemberState, Step], MemberState]] = MappingProxyType(
    {
        (state, step): to
        for state in MemberState
        for step, to in (
            (Step.GIVE_UP, MemberState.UNREVOKED),
            (Step.WAIT, MemberState.UNRELEASED),
            (Step.SETTLE, MemberState.STABLE),
        )
    }
)


class GroupState(Enum):
    """A group, in Kafka's words: it follows from its members, and is nowhere written."""

    EMPTY = "Empty"  # nobody is in it; it may have offsets
    ASSIGNING = "Assigning"  # the next heartbeat makes a new target
    RECONCILING = "Reconciling"  # some member is not there yet
    STABLE = "Stable"
    DEAD = "Dead"  # removed
