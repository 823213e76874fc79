"""The end of a transaction: by EndTxn, or because its producer is fenced.

With transactions v1 a producer keeps its epoch over many transactions. So a repeated EndTxn can be recognised by the
state only: if the last transaction ended in the same way, the answer is the same. With transactions v2 the epoch is
bumped at each end. The epoch says which transaction is meant, and a late EndTxn never ends the next one.
"""

from dataclasses import replace

from tailrace.model.faults import ConcurrentTransactions, InvalidTransactionState, ProducerFenced, UnknownProducerId
from tailrace.transactions.states import Cause, State
from tailrace.transactions.transaction import (
    LAST_EPOCH,
    NOTHING,
    TRANSACTIONS_V2,
    Producer,
    Transaction,
)
from tailrace.transactions.turn import TransactionTurn


def is_repeated_end(transaction: Transaction, producer: Producer, committed: bool, version: int) -> bool:
    """Whether an EndTxn is a retry of one that was carried out; raises the fault of one that is not allowed."""
    if version < TRANSACTIONS_V2:
        return _is_repeated_v1(transaction, producer, committed)
    if transaction.is_prepared:
        raise _concurrent(transaction)
    is_repeated = _is_repeated_v2(transaction, producer)
    if producer.id != transaction.producer_id and not is_repeated:
        raise _wrong_producer_id(transaction, producer)
    if not is_repeated:
        _require_epoch(transaction, producer)
    if is_repeated:
        _require_outcome(transaction, committed)
        return True
    if committed and transaction.state is not State.ONGOING:
        raise InvalidTransactionState(
            f"Transactional id {transaction.transactional_id} has no ongoing transaction to commit."
        )
    return False


def _is_repeated_v1(transaction: Transaction, producer: Producer, committed: bool) -> bool:
    if producer.id != transaction.producer_id:
        raise _wrong_producer_id(transaction, producer)
    _require_epoch(transaction, producer)
    if transaction.state is State.ONGOING:
        return False
    _require_outcome(transaction, committed)
    if transaction.is_prepared:
        raise _concurrent(transaction)
    return True


def _is_repeated_v2(transaction: Transaction, producer: Producer) -> bool:
    """Whether the producer still has the epoch before the last end: it missed the answer to its EndTxn."""
    has_ended = transaction.state in (State.COMPLETE_COMMIT, State.COMPLETE_ABORT)
    if not has_ended or transaction.client_version < TRANSACTIONS_V2 or producer.epoch != transaction.last_epoch:
        return False
    return producer.id == (transaction.producer_id if transaction.epoch else transaction.previous_producer_id)


def _require_outcome(transaction: Transaction, committed: bool) -> None:
    ends = (State.PREPARE_COMMIT, State.COMPLETE_COMMIT) if committed else (State.PREPARE_ABORT, State.COMPLETE_ABORT)
    if transaction.state not in ends:
        raise InvalidTransactionState(
            f"Transactional id {transaction.transactional_id} is in state {transaction.state.value}, and cannot be "
            f"{'committed' if committed else 'aborted'}."
        )


def prepare(
    transaction: Transaction, committed: bool, version: int, new_producer_id: int, turn: TransactionTurn
) -> Transaction:
    """Write the decision that EndTxn asks for; with transactions v2, bump the epoch."""
    bumps_epoch = version >= TRANSACTIONS_V2
    if bumps_epoch and transaction.is_exhausted and new_producer_id == NOTHING:
        raise ConcurrentTransactions(f"Transactional id {transaction.transactional_id} needs a new producer id: retry.")
    state = turn.step(transaction, Cause.COMMITTED if committed else Cause.ABORTED)
    started = transaction.started_ms if transaction.state is State.ONGOING else turn.wall_ms
    ending = replace(transaction, state=state, client_version=version, started_ms=started)
    if bumps_epoch:
        next_id = new_producer_id if transaction.is_exhausted else NOTHING
        ending = replace(ending, epoch=_next_epoch(transaction), last_epoch=transaction.epoch, next_producer_id=next_id)
    return turn.write(ending)


def fence(transaction: Transaction, turn: TransactionTurn) -> Transaction:
    """Fence the producer and abort its transaction, with an epoch that no producer has."""
    fenced = replace(
        transaction,
        state=turn.step(transaction, Cause.FENCED),
        epoch=_next_epoch(transaction),
        last_epoch=NOTHING,
    )
    return turn.write(replace(fenced, state=turn.step(fenced, Cause.ABORTED)))


def _next_epoch(transaction: Transaction) -> int:
    return min(transaction.epoch, LAST_EPOCH) + 1


def complete(transaction: Transaction, turn: TransactionTurn) -> Transaction:
    """All markers are written."""
    done = replace(transaction, state=turn.step(transaction, Cause.MARKED), places=(), next_producer_id=NOTHING)
    if transaction.next_producer_id != NOTHING:
        done = replace(
            done, producer_id=transaction.next_producer_id, epoch=0, previous_producer_id=transaction.producer_id
        )
    return turn.write(done)


def next_producer(ending: Transaction) -> Producer:
    """The id and epoch with which the producer continues after this end."""
    if ending.next_producer_id != NOTHING:
        return Producer(ending.next_producer_id, 0)
    return ending.producer


def check_producer(transaction: Transaction, producer: Producer) -> None:
    """Whether the producer may add to the transaction, or begin the next one."""
    if transaction.is_prepared:
        raise _concurrent(transaction)
    if producer.id != transaction.producer_id:
        raise _wrong_producer_id(transaction, producer)
    _require_epoch(transaction, producer)


def _require_epoch(transaction: Transaction, producer: Producer) -> None:
    """The epoch is current, and not the one above `LAST_EPOCH`, which only fences."""
    if producer.epoch != transaction.epoch or producer.epoch > LAST_EPOCH:
        raise ProducerFenced(
            f"Transactional id {transaction.transactional_id} has epoch {transaction.epoch}, not {producer.epoch}."
        )


def _concurrent(transaction: Transaction) -> ConcurrentTransactions:
    return ConcurrentTransactions(
        f"The previous transaction of transactional id {transaction.transactional_id} is still ending."
    )


def _wrong_producer_id(transaction: Transaction, producer: Producer) -> UnknownProducerId:
    return UnknownProducerId(
        f"Transactional id {transaction.transactional_id} has producer id {transaction.producer_id}, not {producer.id}."
    )
