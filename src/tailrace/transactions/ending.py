"""How transactions end: by EndTxn, or because their producer is gone.

Clients of transactions v1 keep their epoch over many transactions, so an EndTxn that is sent again can be told from
another only by the state: one for a transaction that ended in the same way is answered as before. Clients of v2 get a
new epoch at each end: the epoch says which transaction is meant, and a late EndTxn never touches the next one.
"""

from dataclasses import replace

from tailrace.model.faults import ConcurrentTransactions, InvalidTransactionState, ProducerFenced, UnknownProducerId
from tailrace.transactions.states import Cause, State
from tailrace.transactions.transaction import (
    FIRST_EPOCH_VERSION,
    LAST_EPOCH_OF_AN_ID,
    NOTHING,
    Producer,
    Transaction,
)
from tailrace.transactions.turn import TransactionTurn


def has_ended(transaction: Transaction, who: Producer, committed: bool, version: int) -> bool:
    """Whether this was done already, and is to be answered as before. Raises what else stands against it."""
    if version < FIRST_EPOCH_VERSION:
        return _has_ended_v1(transaction, who, committed)
    if transaction.is_prepared:
        raise _concurrent(transaction)
    again = _is_asked_again(transaction, who)
    if who.id != transaction.producer_id and not again:
        raise _other_id(transaction, who)
    if not again:
        _require_epoch(transaction, who)
    if again:
        _require_end(transaction, committed)
        return True
    if committed and transaction.state is not State.ONGOING:
        raise InvalidTransactionState(f"{transaction.transactional_id} has nothing to commit")
    return False


def _has_ended_v1(transaction: Transaction, who: Producer, committed: bool) -> bool:
    if who.id != transaction.producer_id:
        raise _other_id(transaction, who)
    _require_epoch(transaction, who)
    if transaction.state is State.ONGOING:
        return False
    _require_end(transaction, committed)
    if transaction.is_prepared:
        raise _concurrent(transaction)
    return True


def _is_asked_again(transaction: Transaction, who: Producer) -> bool:
    """Whether a client of v2 has missed the answer to its last EndTxn: since then it has another epoch."""
    ended = transaction.state in (State.COMPLETE_COMMIT, State.COMPLETE_ABORT)
    if not ended or transaction.client_version < FIRST_EPOCH_VERSION or who.epoch != transaction.last_epoch:
        return False
    return who.id == (transaction.producer_id if transaction.epoch else transaction.previous_producer_id)


def _require_end(transaction: Transaction, committed: bool) -> None:
    ends = (State.PREPARE_COMMIT, State.COMPLETE_COMMIT) if committed else (State.PREPARE_ABORT, State.COMPLETE_ABORT)
    if transaction.state not in ends:
        raise InvalidTransactionState(
            f"{transaction.transactional_id} is in state {transaction.state.value}, and cannot be "
            f"{'committed' if committed else 'aborted'}"
        )


def prepare(
    transaction: Transaction, committed: bool, version: int, new_producer_id: int, turn: TransactionTurn
) -> Transaction:
    """Decide how it ends, as its producer asked."""
    bumps = version >= FIRST_EPOCH_VERSION
    if bumps and transaction.is_exhausted and new_producer_id == NOTHING:
        raise ConcurrentTransactions(f"{transaction.transactional_id} needs another producer id: ask again")
    state = turn.step(transaction, Cause.COMMITTED if committed else Cause.ABORTED)
    started = transaction.started_ms if transaction.state is State.ONGOING else turn.wall_ms
    ending = replace(transaction, state=state, client_version=version, started_ms=started)
    if bumps:
        follower = new_producer_id if transaction.is_exhausted else NOTHING
        ending = replace(ending, epoch=_after(transaction), last_epoch=transaction.epoch, next_producer_id=follower)
    return turn.write(ending)


def fence(transaction: Transaction, turn: TransactionTurn) -> Transaction:
    """Take it from its producer, and abort it: nobody has the epoch in which it ends."""
    fenced = replace(
        transaction,
        state=turn.step(transaction, Cause.FENCED),
        epoch=_after(transaction),
        last_epoch=NOTHING,
    )
    return turn.write(replace(fenced, state=turn.step(fenced, Cause.ABORTED)))


def _after(transaction: Transaction) -> int:
    return min(transaction.epoch, LAST_EPOCH_OF_AN_ID) + 1


def complete(transaction: Transaction, turn: TransactionTurn) -> Transaction:
    """All its partitions have their markers."""
    done = replace(transaction, state=turn.step(transaction, Cause.MARKED), places=(), next_producer_id=NOTHING)
    if transaction.next_producer_id != NOTHING:
        done = replace(
            done, producer_id=transaction.next_producer_id, epoch=0, previous_producer_id=transaction.producer_id
        )
    return turn.write(done)


def for_the_next(ending: Transaction) -> Producer:
    """Who its producer is from now on."""
    if ending.next_producer_id != NOTHING:
        return Producer(ending.next_producer_id, 0)
    return ending.producer


def check_producer(transaction: Transaction, who: Producer) -> None:
    """Whether somebody may go on with a transaction."""
    if transaction.is_prepared:
        raise _concurrent(transaction)
    if who.id != transaction.producer_id:
        raise _other_id(transaction, who)
    _require_epoch(transaction, who)


def _require_epoch(transaction: Transaction, who: Producer) -> None:
    """That somebody has the epoch that holds, and not the one that nobody has: it is there to fence."""
    if who.epoch != transaction.epoch or who.epoch > LAST_EPOCH_OF_AN_ID:
        raise ProducerFenced(f"{transaction.transactional_id} has epoch {transaction.epoch} by now, not {who.epoch}")


def _concurrent(transaction: Transaction) -> ConcurrentTransactions:
    return ConcurrentTransactions(f"the transaction before of {transaction.transactional_id} is being ended")


def _other_id(transaction: Transaction, who: Producer) -> UnknownProducerId:
    return UnknownProducerId(f"{transaction.transactional_id} is not used by producer {who.id}")
