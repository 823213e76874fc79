"""One turn of the machine: when it is, which rules hold, and what comes of it.

The shell appends `records` and replays them, and only when they are committed sends `markers`. Until each partition of
a marker has it, or is gone, it is sent again, and the machine is told (`Transactions.marked`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from tailrace.model.alarms import Alarms
from tailrace.model.frozen import frozen
from tailrace.model.ids import PartitionName
from tailrace.transactions.records import Entry
from tailrace.transactions.states import TRANSITIONS, Cause, Move, State
from tailrace.transactions.transaction import Producer, Transaction, entry


class Alarm(NamedTuple):
    """A transaction's time is up."""

    transactional_id: str


@frozen
class Rules:
    """The broker's settings for transactions."""

    max_timeout_ms: int
    expiration_ms: int


@frozen
class Markers:
    """How a transaction ends, for its partitions."""

    transactional_id: str
    producer: Producer  # with the epoch that the markers carry
    committed: bool
    client_version: int
    places: Sequence[PartitionName]


@dataclass(slots=True, kw_only=True)
class TransactionTurn:
    now: float  # seconds of a clock that never goes back
    wall_ms: int
    rules: Rules
    alarms: Alarms[Alarm]
    records: list[Entry] = field(default_factory=list)
    markers: list[Markers] = field(default_factory=list)
    moves: list[tuple[str, Move]] = field(default_factory=list)  # of which transactional id

    def step(self, transaction: Transaction, cause: Cause) -> State:
        """The state that the table says; the move is told."""
        to = TRANSITIONS[transaction.state, cause]
        self.moves.append((transaction.transactional_id, Move(transaction.state, cause, to)))
        return to

    def write(self, transaction: Transaction) -> Transaction:
        """Put down how it stands from now on."""
        written = replace(transaction, updated_ms=self.wall_ms)
        self.records.append(entry(written))
        return written
