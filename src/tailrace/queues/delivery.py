"""How the delivery of a record proceeds: the table of transitions between its states.

The table *is* the state machine: a cause that is not listed for a state is a bug. The diagram in docs/queues.md is
generated from it, and the transcripts in tests/transcripts/queues take every row.

A record is *available* until a member acquires it. The member holds a lock on it for a while, and accepts, releases
or rejects it. A record that comes back too often, or is rejected, is *archived*: no member gets it again. With a dead
letter topic it is *archiving* until a copy is in that topic.
"""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final

from tailrace.model.transitions import Transition
from tailrace.queues.state import DeliveryState as State


class Cause(Enum):
    ACQUIRED = "is acquired by a member"
    ACCEPTED = "is accepted"
    RELEASED = "is released, its lock ends, or its member leaves"
    DISCARDED = "is rejected, or comes back at the delivery limit, without a dead letter topic"
    REJECTED = "is rejected"
    EXCEEDED = "comes back at the delivery limit"
    DEAD_LETTERED = "has a copy in the dead letter topic"
    SKIPPED = "turns out not to be deliverable: a control record, aborted, or deleted"


Move = Transition[State, Cause]

TRANSITIONS: Final[Mapping[tuple[State, Cause], State]] = MappingProxyType(
    {
        (State.AVAILABLE, Cause.ACQUIRED): State.ACQUIRED,
        (State.AVAILABLE, Cause.SKIPPED): State.ARCHIVED,
        (State.ACQUIRED, Cause.ACCEPTED): State.ACKNOWLEDGED,
        (State.ACQUIRED, Cause.RELEASED): State.AVAILABLE,
        (State.ACQUIRED, Cause.DISCARDED): State.ARCHIVED,
        (State.ACQUIRED, Cause.REJECTED): State.ARCHIVING,
        (State.ACQUIRED, Cause.EXCEEDED): State.ARCHIVING,
        (State.ACQUIRED, Cause.SKIPPED): State.ARCHIVED,
        (State.ARCHIVING, Cause.DEAD_LETTERED): State.ARCHIVED,
    }
)

FINISHED: Final = frozenset({State.ACKNOWLEDGED, State.ARCHIVED})
