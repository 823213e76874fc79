"""The states of a transactional id, and the table of transitions between them.

The table *is* the state machine: a cause that is not listed for a state is a bug. The diagram in docs/transactions.md
is generated from it, and the transcripts in tests/transcripts/transactions take every row.

A producer initialises a transactional id and runs one transaction after another with it. A transaction is *ongoing*
from its first partition on. One record decides its outcome: then it is *prepared*, and the outcome is final. Markers
are sent to all its partitions until each has written its own; then it is *complete*, and only then can the next
transaction begin. So a marker never ends a transaction other than its own.
"""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final

from tailrace.model.transitions import Transition


class State(Enum):
    """By Kafka's names, which tools show."""

    EMPTY = "Empty"  # a producer has initialised it and not begun a transaction
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"  # decided; markers are being sent
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"  # all markers are written
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"  # expired
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"  # the producer is fenced; in the same turn the transaction is aborted


class Cause(Enum):
    INITIALISED = "is initialised by a producer"
    ADDED = "gets partitions added"
    COMMITTED = "is committed"
    ABORTED = "is aborted"
    FENCED = "has its producer fenced, or times out"
    MARKED = "has all markers written"
    EXPIRED = "expires"


Move = Transition[State, Cause]


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

# The numbers in Kafka's records.
STATUS_NUMBERS: Final[Mapping[State, int]] = MappingProxyType({state: number for number, state in enumerate(State)})
STATES_BY_NUMBER: Final[Mapping[int, State]] = MappingProxyType(dict(enumerate(State)))
PREPARED: Final = (State.PREPARE_COMMIT, State.PREPARE_ABORT)
AT_REST: Final = (State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT)
