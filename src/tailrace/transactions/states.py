"""The states of a transactional id, and the table of what leads from one to the next.

The table *is* the machine: a cause that it does not list for a state is a bug of ours. The diagram in
docs/transactions.md is made from it, and every row is taken by some transcript in tests/transcripts/transactions.

A producer takes a name, the transactional id, and runs one transaction after the other under it. A transaction is
*ongoing* from its first partition on. How it ends is decided by one record: it is *prepared*. From then on nothing can
change that. Markers go to all its partitions, as often as it takes, and when all have one it is *complete*; only then
may the next begin. So a marker never meets a transaction that it was not written for.
"""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final, NamedTuple


class State(Enum):
    """In Kafka's words, which tools show."""

    EMPTY = "Empty"  # a producer has come, and has begun nothing
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"  # decided; markers are on their way
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"  # markers are everywhere
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"  # forgotten
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"  # taken from its producer; it is aborted in the same breath


class Cause(Enum):
    INITIALISED = "gets a producer"
    ADDED = "takes in a partition"
    COMMITTED = "is to be committed"
    ABORTED = "is to be aborted"
    FENCED = "is taken from its producer, or its time is up"
    MARKED = "has its markers everywhere"
    EXPIRED = "was not used for long"


class Move(NamedTuple):
    """One row of the table, taken."""

    state: State
    cause: Cause
    to: State


TRANSITIONS: Final[Mapping[tuple[State, Cause], State]] = MappingProxyType(
    {
        (State.EMPTY, Cause.INITIALISED): State.EMPTY,
        (State.EMPTY, Cause.ADDED): State.ONGOING,
        (State.EMPTY, Cause.ABORTED): State.PREPARE_ABORT,
        (State.EMPTY, Cause.EXPIRED): State.DEAD,
        (State.ONGOING, Cause.ADDED): State.ONGOING,
        (State.ONGOING, Cause.COMMITTED): State.PREPARE_COMMIT,
        (State.ONGOING, Cause.ABORTED): State.PREPARE_ABORT,
        (State.ONGOING, Cause.FENCED): State.PREPARE_EPOCH_FENCE,
        (State.PREPARE_EPOCH_FENCE, Cause.ABORTED): State.PREPARE_ABORT,
        (State.PREPARE_COMMIT, Cause.MARKED): State.COMPLETE_COMMIT,
        (State.PREPARE_ABORT, Cause.MARKED): State.COMPLETE_ABORT,
        (State.COMPLETE_COMMIT, Cause.INITIALISED): State.EMPTY,
        (State.COMPLETE_COMMIT, Cause.ADDED): State.ONGOING,
        (State.COMPLETE_COMMIT, Cause.ABORTED): State.PREPARE_ABORT,
        (State.COMPLETE_COMMIT, Cause.EXPIRED): State.DEAD,
        (State.COMPLETE_ABORT, Cause.INITIALISED): State.EMPTY,
        (State.COMPLETE_ABORT, Cause.ADDED): State.ONGOING,
        (State.COMPLETE_ABORT, Cause.ABORTED): State.PREPARE_ABORT,
        (State.COMPLETE_ABORT, Cause.EXPIRED): State.DEAD,
    }
)

# The numbers that Kafka writes into its log.
STATUS_NUMBERS: Final[Mapping[State, int]] = MappingProxyType({state: number for number, state in enumerate(State)})
STATES_BY_NUMBER: Final[Mapping[int, State]] = MappingProxyType(dict(enumerate(State)))
PREPARED: Final = (State.PREPARE_COMMIT, State.PREPARE_ABORT)
AT_REST: Final = (State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT)
