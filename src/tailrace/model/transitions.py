"""A transition between two states, as the state machines of Raft, groups and transactions report them."""

from typing import Generic, NamedTuple, TypeVar

S = TypeVar("S")
C = TypeVar("C")


class Transition(NamedTuple, Generic[S, C]):
    """A transition that was made: one row of a machine's table."""

    state: S
    cause: C
    to: S
