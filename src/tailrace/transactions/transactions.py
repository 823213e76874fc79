"""The coordinator of the transactional ids in one partition of `__transaction_state`, as a state machine without I/O.

Each request is a method call with a `TransactionTurn`, which collects the records to append and the markers to send. A
refused request raises a fault and changes nothing. Whatever is in the log changes by `replay` only. Which markers are
still to be written is known to the active coordinator alone: the next one sends all of them again.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from tailrace.model.alarms import Alarms
from tailrace.model.faults import (
    ConcurrentTransactions,
    InvalidRequest,
    InvalidTransactionState,
    PolicyViolation,
    TransactionNotFound,
    UnknownProducerId,
)
from tailrace.model.ids import PartitionName
from tailrace.model.limits import PARTITIONS_PER_TRANSACTION_MAX
from tailrace.transactions import ending, initialising
from tailrace.transactions.records import Entry, TransactionLogKey
from tailrace.transactions.states import AT_REST, Cause, State
from tailrace.transactions.transaction import (
    TRANSACTIONS_V2,
    Producer,
    Transaction,
    entry,
    transaction_of,
)
from tailrace.transactions.turn import Alarm, Markers, TransactionTurn

NO_CONNECTION: Final = 0  # the connection is unknown, or not checked


class PendingMarkers(NamedTuple):
    """The partitions of a prepared transaction that have not written their markers."""

    markers: Markers
    places: dict[PartitionName, None]  # never empty


class Transactions:
    def __init__(self) -> None:
        self.transactions: dict[str, Transaction] = {}
        self.pending_markers: dict[str, PendingMarkers] = {}  # by transactional id
        self.alarms: Alarms[Alarm] = Alarms()
        self._connections: dict[str, int] = {}  # by transactional id: the newest connection that its producer used

    # The log

    def replay(self, record: Entry) -> None:
        transactional_id = record.key.transactional_id
        if record.value is None:
            self.transactions.pop(transactional_id, None)
        else:
            self.transactions[transactional_id] = transaction_of(record.key, record.value)

    def serve(self, turn: TransactionTurn) -> None:
        """Become active when the log is loaded: set timeouts of ongoing transactions, send markers of prepared ones."""
        for transaction in list(self.transactions.values()):
            if transaction.state is State.ONGOING:
                self._set_timeout(transaction, turn)
            elif transaction.is_prepared:
                self._send(transaction, turn)

    # Producers

    def needs_id(self, transactional_id: str) -> bool:
        """Whether the next request may need a new producer id, which the driver has to get before the turn."""
        known = self.transactions.get(transactional_id)
        return known is None or known.is_exhausted

    def init(
        self,
        transactional_id: str,
        timeout_ms: int,
        expected: Producer | None,
        new_producer_id: int,
        turn: TransactionTurn,
    ) -> Producer | None:
        """InitProducerId. Returns None if an ongoing transaction has to be aborted first: the client must retry."""
        _check_id(transactional_id)
        initialising.check_timeout(timeout_ms, turn)
        known = self.transactions.get(transactional_id)
        transaction = known or Transaction(transactional_id=transactional_id, timeout_ms=timeout_ms)
        if transaction.is_prepared:
            raise ConcurrentTransactions(
                f"The previous transaction of transactional id {transactional_id} is still ending."
            )
        initialising.check_expected(transaction, expected)
        if transaction.state is State.ONGOING:
            self._connections.pop(transactional_id, None)
            self._end(ending.fence(transaction, turn), turn)
            return None
        producer = initialising.assign_producer(transaction, timeout_ms, expected, new_producer_id, turn)
        if producer != transaction.producer:
            # Late requests have an old epoch now; and some clients send InitProducerId on a connection of its own.
            self._connections.pop(transactional_id, None)
        return producer

    def add(
        self,
        transactional_id: str,
        producer: Producer,
        places: Sequence[PartitionName],
        version: int,
        turn: TransactionTurn,
        connection: int = NO_CONNECTION,
    ) -> None:
        """Add partitions: AddPartitionsToTxn, AddOffsetsToTxn, or with transactions v2 the first write to them."""
        transaction = self._known(transactional_id)
        ending.check_producer(transaction, producer)
        self._check_connection(transactional_id, connection)
        known = dict.fromkeys(transaction.places)
        new = [place for place in dict.fromkeys(places) if place not in known]
        if not new:
            return
        if len(known) + len(new) > PARTITIONS_PER_TRANSACTION_MAX:
            raise PolicyViolation(f"A transaction may have {PARTITIONS_PER_TRANSACTION_MAX} partitions.")
        started = transaction.started_ms if transaction.state is State.ONGOING else turn.wall_ms
        state = turn.step(transaction, Cause.ADDED)
        written = replace(transaction, state=state, places=(*known, *new), started_ms=started, client_version=version)
        self._set_timeout(turn.write(written), turn)

    def missing(
        self, transactional_id: str, producer: Producer, places: Sequence[PartitionName]
    ) -> list[PartitionName]:
        """The partitions that are not in the producer's transaction."""
        transaction = self._known(transactional_id)
        ending.check_producer(transaction, producer)
        known = dict.fromkeys(transaction.places)
        return [place for place in places if place not in known]

    def end(
        self,
        transactional_id: str,
        producer: Producer,
        committed: bool,
        version: int,
        new_producer_id: int,
        turn: TransactionTurn,
        connection: int = NO_CONNECTION,
    ) -> Producer:
        """EndTxn: commit or abort. Returns the id and epoch with which the producer continues."""
        transaction = self._known(transactional_id)
        if ending.is_repeated_end(transaction, producer, committed, version):
            return transaction.producer
        if version < TRANSACTIONS_V2:
            self._check_connection(transactional_id, connection)
        prepared = ending.prepare(transaction, committed, version, new_producer_id, turn)
        self._end(prepared, turn)
        return ending.next_producer(prepared)

    def _check_connection(self, transactional_id: str, connection: int) -> None:
        """Refuse a late request of transactions v1.

        Its epoch does not tell that it belongs to the previous transaction. Its connection does: the producer has
        used a newer one since."""
        if NO_CONNECTION < connection < self._connections.get(transactional_id, NO_CONNECTION):
            raise InvalidTransactionState(
                f"Late request: the producer of transactional id {transactional_id} has a newer connection."
            )
        self._connections[transactional_id] = connection

    def _known(self, transactional_id: str) -> Transaction:
        _check_id(transactional_id)
        known = self.transactions.get(transactional_id)
        if known is None:
            raise UnknownProducerId(f"Transactional id {transactional_id} has no producer id.")
        return known

    # Markers

    def _end(self, prepared: Transaction, turn: TransactionTurn) -> None:
        turn.alarms.cancel(Alarm(prepared.transactional_id))
        if prepared.places:
            self._send(prepared, turn)
        else:
            ending.complete(prepared, turn)

    def _send(self, prepared: Transaction, turn: TransactionTurn) -> None:
        markers = Markers(
            transactional_id=prepared.transactional_id,
            producer=prepared.producer,
            committed=prepared.state is State.PREPARE_COMMIT,
            client_version=prepared.client_version,
            places=prepared.places,
        )
        self.pending_markers[prepared.transactional_id] = PendingMarkers(markers, dict.fromkeys(prepared.places))
        turn.markers.append(markers)

    def awaits(self, markers: Markers, place: PartitionName) -> bool:
        """Whether a partition still has to write its marker.

        Markers are compared by identity: equal ones may belong to an earlier transaction with the same epoch."""
        pending = self.pending_markers.get(markers.transactional_id)
        return pending is not None and pending.markers is markers and place in pending.places

    def marked(self, markers: Markers, places: Sequence[PartitionName], turn: TransactionTurn) -> None:
        """Partitions have written these markers, or are deleted; with the last one the transaction is complete."""
        awaited = [place for place in places if self.awaits(markers, place)]
        if not awaited:
            return
        pending = self.pending_markers[markers.transactional_id]
        for place in awaited:
            del pending.places[place]
        if not pending.places:
            del self.pending_markers[markers.transactional_id]
            ending.complete(self.transactions[markers.transactional_id], turn)

    # Time

    def _set_timeout(self, transaction: Transaction, turn: TransactionTurn) -> None:
        # Wall clocks may be changed, or differ between brokers: the rest is never more than the whole timeout.
        left_ms = max(0, transaction.started_ms + transaction.timeout_ms - turn.wall_ms)
        left_ms = min(left_ms, transaction.timeout_ms)
        turn.alarms.set(Alarm(transaction.transactional_id), turn.now + left_ms / 1000)

    def ring(self, turn: TransactionTurn) -> None:
        """Abort the transactions whose timeout is over."""
        for alarm in self.alarms.rung(turn.now):
            transaction = self.transactions.get(alarm.transactional_id)
            if transaction is not None and transaction.state is State.ONGOING:
                self._end(ending.fence(transaction, turn), turn)

    def expire(self, transactional_ids: Sequence[str], turn: TransactionTurn) -> None:
        """Delete transactional ids that have not been used for `transactional.id.expiration.ms`."""
        for transaction in [self.transactions[one] for one in transactional_ids if one in self.transactions]:
            unused_ms = turn.wall_ms - transaction.updated_ms
            if transaction.state in AT_REST and unused_ms >= turn.rules.expiration_ms:
                turn.step(transaction, Cause.EXPIRED)
                self._connections.pop(transaction.transactional_id, None)
                key = TransactionLogKey(transactional_id=transaction.transactional_id)
                turn.records.append(Entry(key, None))

    def rewrite(self, transactional_ids: Sequence[str], turn: TransactionTurn) -> None:
        """Append the state of some transactional ids again, so that the log before can be deleted."""
        turn.records += [entry(self.transactions[one]) for one in transactional_ids if one in self.transactions]

    # Queries

    def find(self, transactional_id: str) -> Transaction:
        _check_id(transactional_id)
        if transactional_id not in self.transactions:
            raise TransactionNotFound(f"Transactional id {transactional_id} not found.")
        return self.transactions[transactional_id]


def _check_id(transactional_id: str) -> None:
    if not transactional_id:
        raise InvalidRequest("TransactionalId can't be empty.")
