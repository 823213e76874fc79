"""The transactions whose state is kept in one partition of `__transaction_state`: the machine that its leader runs.

Requests come as calls with a `TransactionTurn`, which gathers the records to append and the markers to send. A refusal
is raised, and then nothing has changed. `replay` alone changes what is in the log; which partitions have no marker yet
is known only to the coordinator that serves: the next one sends all of them again.
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
    FIRST_EPOCH_VERSION,
    Producer,
    Transaction,
    entry,
    transaction_of,
)
from tailrace.transactions.turn import Alarm, Markers, TransactionTurn

NO_LINK: Final = 0  # the connection does not matter, or is not known


class Unmarked(NamedTuple):
    """Who has no marker yet."""

    markers: Markers
    places: dict[PartitionName, None]  # never empty


class Transactions:
    def __init__(self) -> None:
        self.transactions: dict[str, Transaction] = {}
        self.unmarked: dict[str, Unmarked] = {}  # of those whose end is prepared
        self.alarms: Alarms[Alarm] = Alarms()
        self._links: dict[str, int] = {}  # the newest connection that the producer of each name has used

    # The log

    def replay(self, said: Entry) -> None:
        name = said.key.transactional_id
        if said.value is None:
            self.transactions.pop(name, None)
        else:
            self.transactions[name] = transaction_of(said.key, said.value)

    def serve(self, turn: TransactionTurn) -> None:
        """The log is read: what is open has the rest of its time, what is decided is carried out."""
        for transaction in list(self.transactions.values()):
            if transaction.state is State.ONGOING:
                self._await_end(transaction, turn)
            elif transaction.is_prepared:
                self._send(transaction, turn)

    # Producers

    def needs_id(self, transactional_id: str) -> bool:
        """Whether a producer id must be at hand for what may be asked next."""
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
        """Give the name to a producer; None: what was open is being aborted, and it has to ask again."""
        _check_name(transactional_id)
        initialising.check_timeout(timeout_ms, turn)
        known = self.transactions.get(transactional_id)
        transaction = known or Transaction(transactional_id=transactional_id, timeout_ms=timeout_ms)
        if transaction.is_prepared:
            raise ConcurrentTransactions(f"the transaction before of {transactional_id} is being ended")
        initialising.check_expected(transaction, expected)
        if transaction.state is State.ONGOING:
            self._links.pop(transactional_id, None)
            self._end(ending.fence(transaction, turn), turn)
            return None
        given = initialising.take(transaction, timeout_ms, expected, new_producer_id, turn)
        if given != transaction.producer:
            # Late requests have the epoch before, and some clients ask for another by a connection apart.
            self._links.pop(transactional_id, None)
        return given

    def add(
        self,
        transactional_id: str,
        who: Producer,
        places: Sequence[PartitionName],
        version: int,
        turn: TransactionTurn,
        link: int = NO_LINK,
    ) -> None:
        """Let partitions take part."""
        transaction = self._of(transactional_id)
        ending.check_producer(transaction, who)
        self._hear(transactional_id, link)
        known = dict.fromkeys(transaction.places)
        new = [place for place in dict.fromkeys(places) if place not in known]
        if not new:
            return
        if len(known) + len(new) > PARTITIONS_PER_TRANSACTION_MAX:
            raise PolicyViolation(f"a transaction may have {PARTITIONS_PER_TRANSACTION_MAX} partitions")
        began = transaction.started_ms if transaction.state is State.ONGOING else turn.wall_ms
        state = turn.step(transaction, Cause.ADDED)
        written = replace(transaction, state=state, places=(*known, *new), started_ms=began, client_version=version)
        self._await_end(turn.write(written), turn)

    def missing(self, transactional_id: str, who: Producer, places: Sequence[PartitionName]) -> list[PartitionName]:
        """Which of these take no part in a producer's transaction."""
        transaction = self._of(transactional_id)
        ending.check_producer(transaction, who)
        known = dict.fromkeys(transaction.places)
        return [place for place in places if place not in known]

    def end(
        self,
        transactional_id: str,
        who: Producer,
        committed: bool,
        version: int,
        new_producer_id: int,
        turn: TransactionTurn,
        link: int = NO_LINK,
    ) -> Producer:
        """Commit or abort; who the producer is from now on."""
        transaction = self._of(transactional_id)
        if ending.has_ended(transaction, who, committed, version):
            return transaction.producer
        if version < FIRST_EPOCH_VERSION:
            self._hear(transactional_id, link)
        prepared = ending.prepare(transaction, committed, version, new_producer_id, turn)
        self._end(prepared, turn)
        return ending.for_the_next(prepared)

    def _hear(self, transactional_id: str, link: int) -> None:
        """With transactions v1 nothing in a late request says that it means the transaction before, but that it comes
        by a connection which its producer has given up since: there is a newer one."""
        if NO_LINK < link < self._links.get(transactional_id, NO_LINK):
            raise InvalidTransactionState(f"the producer of {transactional_id} has come by another connection since")
        self._links[transactional_id] = link

    def _of(self, transactional_id: str) -> Transaction:
        _check_name(transactional_id)
        known = self.transactions.get(transactional_id)
        if known is None:
            raise UnknownProducerId(f"nobody has used {transactional_id}")
        return known

    # Ends

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
        self.unmarked[prepared.transactional_id] = Unmarked(markers, dict.fromkeys(prepared.places))
        turn.markers.append(markers)

    def awaits(self, markers: Markers, place: PartitionName) -> bool:
        """Whether a partition still needs its marker. What was not sent for this very end means one that is over."""
        unmarked = self.unmarked.get(markers.transactional_id)
        return unmarked is not None and unmarked.markers is markers and place in unmarked.places

    def marked(self, markers: Markers, places: Sequence[PartitionName], turn: TransactionTurn) -> None:
        """Partitions have these markers, or are gone."""
        awaited = [place for place in places if self.awaits(markers, place)]
        if not awaited:
            return
        unmarked = self.unmarked[markers.transactional_id]
        for place in awaited:
            del unmarked.places[place]
        if not unmarked.places:
            del self.unmarked[markers.transactional_id]
            ending.complete(self.transactions[markers.transactional_id], turn)

    # Time

    def _await_end(self, transaction: Transaction, turn: TransactionTurn) -> None:
        # Clocks may have been set, or differ between brokers: nobody waits longer than the whole time for that.
        left_ms = max(0, transaction.started_ms + transaction.timeout_ms - turn.wall_ms)
        left_ms = min(left_ms, transaction.timeout_ms)
        turn.alarms.set(Alarm(transaction.transactional_id), turn.now + left_ms / 1000)

    def ring(self, turn: TransactionTurn) -> None:
        """Abort what was open for too long."""
        for alarm in self.alarms.rung(turn.now):
            transaction = self.transactions.get(alarm.transactional_id)
            if transaction is not None and transaction.state is State.ONGOING:
                self._end(ending.fence(transaction, turn), turn)

    def expire(self, transactional_ids: Sequence[str], turn: TransactionTurn) -> None:
        """Forget names that nobody has used for long."""
        for transaction in [self.transactions[one] for one in transactional_ids if one in self.transactions]:
            unused_ms = turn.wall_ms - transaction.updated_ms
            if transaction.state in AT_REST and unused_ms >= turn.rules.expiration_ms:
                turn.step(transaction, Cause.EXPIRED)
                self._links.pop(transaction.transactional_id, None)
                key = TransactionLogKey(transactional_id=transaction.transactional_id)
                turn.records.append(Entry(key, None))

    def restate(self, transactional_ids: Sequence[str], turn: TransactionTurn) -> None:
        """Say once more how some stand, so that what was said before need not be kept."""
        turn.records += [entry(self.transactions[one]) for one in transactional_ids if one in self.transactions]

    # Questions

    def find(self, transactional_id: str) -> Transaction:
        _check_name(transactional_id)
        if transactional_id not in self.transactions:
            raise TransactionNotFound(f"there is no transactional id {transactional_id}")
        return self.transactions[transactional_id]


def _check_name(transactional_id: str) -> None:
    if not transactional_id:
        raise InvalidRequest("a transactional id cannot be empty")
