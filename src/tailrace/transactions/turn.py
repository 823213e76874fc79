"""The inputs and outputs of one call of the transaction state machine.

The driver (`broker/transactions/partition_coordinator.py`) fills in the time and the settings, appends and replays
`records`, and sends `markers` only when the records are committed. It sends a marker again until the partition has
written it or is deleted, and reports that with `Transactions.marked`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from tailrace.model.alarms import Alarms
from tailrace.model.frozen import frozen
from tailrace.model.ids import PartitionName
from tailrace.model.transitions import Transition
from tailrace.transactions.records import Entry
from tailrace.transactions.states import TRANSITIONS, Cause, Move, State
from tailrace.transactions.transaction import Producer, Transaction, entry


class Alarm(NamedTuple):
    """The timeout of a transaction."""

    transactional_id: str


@frozen
class Rules:
    """The broker's settings for transactions."""

    max_timeout_ms: int
    expiration_ms: int


@frozen
class Markers:
    """The markers of a transaction's end, for all its partitions."""

    transactional_id: str
    producer: Producer  # its epoch is that of the markers
    committed: bool
    client_version: int
    places: Sequence[PartitionName]


@dataclass(slots=True, kw_only=True)
class TransactionTurn:
    now: float  # monotonic clock, in seconds
    wall_ms: int
    rules: Rules
    alarms: Alarms[Alarm]
    records: list[Entry] = field(default_factory=list)
    markers: list[Markers] = field(default_factory=list)
    moves: list[tuple[str, Move]] = field(default_factory=list)  # state transitions, by transactional id

    def step(self, transaction: Transaction, cause: Cause) -> State:
        """The next state by the table; the transition is recorded in `moves`."""
        to = TRANSITIONS[transaction.state, cause]
        self.moves.append((transaction.transactional_id, Transition(transaction.state, cause, to)))
        return to

    def write(self, transaction: Transaction) -> Transaction:
        """Write the record of a transaction's new state; returns it with its update time."""
        written = replace(transaction, updated_ms=self.wall_ms)
        self.records.append(entry(written))
        return written
