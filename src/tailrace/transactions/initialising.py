"""InitProducerId with a transactional id: the producer gets an epoch that fences all producers before it.

The coordinator aborts an ongoing transaction of the previous producer first. A producer that sends its id and epoch
continues after an error (KIP-360): that is allowed only if no other producer has initialised the transactional id
since. If the answer to such a request was lost, the request comes again with the epoch before, and gets the same
answer.
"""

from dataclasses import replace

from tailrace.model.faults import ConcurrentTransactions, InvalidTransactionTimeout, ProducerFenced
from tailrace.transactions.states import Cause
from tailrace.transactions.transaction import LAST_EPOCH, NOTHING, Producer, Transaction
from tailrace.transactions.turn import TransactionTurn


def check_timeout(timeout_ms: int, turn: TransactionTurn) -> None:
    max_ms = turn.rules.max_timeout_ms
    if not 0 < timeout_ms <= max_ms:
        raise InvalidTransactionTimeout(
            f"Transaction timeout of {timeout_ms} ms; transaction.max.timeout.ms is {max_ms}."
        )


def check_expected(transaction: Transaction, expected: Producer | None) -> None:
    """A producer that sends its id and epoch must still be the current one."""
    if expected is None or transaction.epoch == NOTHING:
        return
    was_exhausted = expected.id == transaction.previous_producer_id and expected.epoch >= LAST_EPOCH
    if expected.id != transaction.producer_id and not was_exhausted:
        raise ProducerFenced(
            f"Transactional id {transaction.transactional_id} has producer id {transaction.producer_id}, "
            f"not {expected.id}."
        )
    if expected.epoch not in (transaction.epoch, transaction.last_epoch):
        raise ProducerFenced(
            f"Transactional id {transaction.transactional_id} has epoch {transaction.epoch}, not {expected.epoch}."
        )


def assign_producer(
    transaction: Transaction, timeout_ms: int, expected: Producer | None, new_producer_id: int, turn: TransactionTurn
) -> Producer:
    """Give the producer its id and epoch; no transaction may be ongoing or prepared."""
    if transaction.epoch == NOTHING or transaction.is_exhausted:
        assigned = _with_new_id(transaction, expected, new_producer_id)
    elif expected is not None and expected.epoch == transaction.last_epoch != transaction.epoch:
        assigned = transaction  # a retry: the answer was lost
    else:
        last = NOTHING if expected is None else transaction.epoch
        assigned = replace(transaction, epoch=transaction.epoch + 1, last_epoch=last)
    state = turn.step(transaction, Cause.INITIALISED)
    return turn.write(replace(assigned, timeout_ms=timeout_ms, state=state, places=(), started_ms=NOTHING)).producer


def _with_new_id(transaction: Transaction, expected: Producer | None, new_producer_id: int) -> Transaction:
    if new_producer_id == NOTHING:
        raise ConcurrentTransactions(f"Transactional id {transaction.transactional_id} needs a new producer id: retry.")
    return replace(
        transaction,
        producer_id=new_producer_id,
        epoch=0,
        previous_producer_id=transaction.producer_id,
        last_epoch=NOTHING if expected is None else transaction.epoch,
    )
