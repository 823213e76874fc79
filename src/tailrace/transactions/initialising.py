"""InitProducerId: a producer takes a name. Whoever had it before is fenced, and what it left open is aborted first.

A producer may say who it believes to be: then it goes on after an error (KIP-360), and only if nobody else has come
since. Its answer may have been lost: asked again with the epoch before, it is told the same once more.
"""

from dataclasses import replace

from tailrace.model.faults import ConcurrentTransactions, InvalidTransactionTimeout, ProducerFenced
from tailrace.transactions.states import Cause
from tailrace.transactions.transaction import LAST_EPOCH_OF_AN_ID, NOTHING, Producer, Transaction
from tailrace.transactions.turn import TransactionTurn


def check_timeout(timeout_ms: int, turn: TransactionTurn) -> None:
    most_ms = turn.rules.max_timeout_ms
    if not 0 < timeout_ms <= most_ms:
        raise InvalidTransactionTimeout(f"a timeout of {timeout_ms} ms; transaction.max.timeout.ms is {most_ms}")


def check_expected(transaction: Transaction, expected: Producer | None) -> None:
    """Whether a producer that says who it is has the name still."""
    if expected is None or transaction.epoch == NOTHING:
        return
    was_exhausted = expected.id == transaction.previous_producer_id and expected.epoch >= LAST_EPOCH_OF_AN_ID
    if expected.id != transaction.producer_id and not was_exhausted:
        raise ProducerFenced(f"{transaction.transactional_id} is used by another producer than {expected.id}")
    if expected.epoch not in (transaction.epoch, transaction.last_epoch):
        raise ProducerFenced(
            f"{transaction.transactional_id} has epoch {transaction.epoch} by now, not {expected.epoch}"
        )


def take(
    transaction: Transaction, timeout_ms: int, expected: Producer | None, new_producer_id: int, turn: TransactionTurn
) -> Producer:
    """Give the name to whoever asks; nothing is under way."""
    if transaction.epoch == NOTHING or transaction.is_exhausted:
        given = _with_new_id(transaction, expected, new_producer_id)
    elif expected is not None and expected.epoch == transaction.last_epoch != transaction.epoch:
        given = transaction  # it was told so before
    else:
        last = NOTHING if expected is None else transaction.epoch
        given = replace(transaction, epoch=transaction.epoch + 1, last_epoch=last)
    state = turn.step(transaction, Cause.INITIALISED)
    return turn.write(replace(given, timeout_ms=timeout_ms, state=state, places=(), started_ms=NOTHING)).producer


def _with_new_id(transaction: Transaction, expected: Producer | None, new_producer_id: int) -> Transaction:
    if new_producer_id == NOTHING:
        raise ConcurrentTransactions(f"{transaction.transactional_id} needs another producer id: ask again")
    return replace(
        transaction,
        producer_id=new_producer_id,
        epoch=0,
        previous_producer_id=transaction.producer_id,
        last_epoch=NOTHING if expected is None else transaction.epoch,
    )
