"""Verification of a Produce request with its transaction coordinator, for all partitions where a transaction may begin.

All partitions are verified with one request. It is repeated for a short time while the coordinator still ends the
producer's previous transaction. If the coordinator cannot be asked, or cannot decide yet, the batches are refused with
a fault on which every client retries.

With transactions v2 a producer continues as soon as its end is decided, so the marker of the previous transaction often
arrives between request and answer, and invalidates the guard. The producer epoch identifies the transaction, so it can
be verified again under a valid guard. Before v2 the epoch stays the same, and a late batch would get into the next
transaction that way, so it is refused.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from tailrace.broker.partitions.partition import Partition
from tailrace.broker.partitions.transaction_guards import Guard, Verifier, is_in_transaction
from tailrace.broker.peers import Unreachable
from tailrace.model.faults import (
    ConcurrentTransactions,
    Fault,
    InvalidRequest,
    InvalidTransactionState,
    NotInTransaction,
    ProducerFenced,
    StaleProducerEpoch,
    Unverified,
)
from tailrace.model.ids import PartitionName
from tailrace.records.header import BatchHeader
from tailrace.transactions.transaction import Producer

ANSWERED_WITHIN_S: Final = 10.0
RETRY_S: Final = 0.02
RETRIES_MAX: Final = 10


class Question(NamedTuple):
    partition: Partition
    producer_id: int
    producer_epoch: int
    guard: Guard

    @property
    def name(self) -> PartitionName:
        topic, _, number = self.partition.name.rpartition("-")
        return PartitionName(topic, int(number))

    @property
    def is_unverified(self) -> bool:
        """Whether the partition has no open transaction of this producer epoch."""
        producers = self.partition.log.producers
        return not is_in_transaction(producers, self.producer_id, self.producer_epoch)


class Verification:
    """`adds`: partitions are added to the transaction; `knows_abortable`: the client knows TRANSACTION_ABORTABLE."""

    def __init__(self, transactional_id: str, *, adds: bool, knows_abortable: bool) -> None:
        self._transactional_id = transactional_id
        self._adds = adds
        self._knows_abortable = knows_abortable
        self._questions: list[Question] = []

    def guard(self, partition: Partition, header: BatchHeader) -> Guard:
        """Take the guard for a batch; after `ask` it allows the append or carries the fault."""
        guard = partition.guards.take(header.producer_id, header.producer_epoch, partition.epoch)
        self._questions.append(Question(partition, header.producer_id, header.producer_epoch, guard))
        return guard

    @property
    def is_needed(self) -> bool:
        return any(one.is_unverified for one in self._questions)

    def done(self) -> None:
        for one in self._questions:
            one.partition.guards.give_back(one.guard)

    async def ask(self, verifier: Verifier) -> None:
        left = [one for one in self._questions if one.is_unverified]
        if any(one[1:3] != left[0][1:3] for one in left):
            _refuse(left, InvalidRequest("request mixes transactional batches of several producers"))
            return
        for again in range(RETRIES_MAX + 1):
            try:
                async with asyncio.timeout(ANSWERED_WITHIN_S):
                    refused = await self._request(verifier, left)
            except (Fault, Unreachable, TimeoutError) as error:
                _refuse(left, _not_asked(error))
                return
            left = self._apply(left, refused)
            if not left:
                return
            if refused and again < RETRIES_MAX:
                await asyncio.sleep(RETRY_S)
        _refuse(left, Unverified("the producer's previous transaction is still ending"))

    async def _request(self, verifier: Verifier, questions: Sequence[Question]) -> Mapping[PartitionName, Fault]:
        producer = Producer(questions[0].producer_id, questions[0].producer_epoch)
        if self._adds:
            for one in questions:
                one.guard.valid = True  # markers written before this request do not matter
        names = [one.name for one in questions]
        return await verifier.verify(self._transactional_id, producer, names, add=self._adds)

    def _apply(self, questions: Sequence[Question], refused: Mapping[PartitionName, Fault]) -> list[Question]:
        """Apply the answer to the guards; returns the questions to repeat."""
        again = []
        for one in questions:
            fault = refused.get(one.name)
            if isinstance(fault, ConcurrentTransactions):
                again.append(one)
            elif fault is not None:
                one.guard.refused = self._refusal(one, fault)
            elif self._adds and not one.guard.valid:
                again.append(one)
            else:
                one.guard.verified = True
        return again

    def _refusal(self, question: Question, fault: Fault) -> Fault:
        what = f"{question.partition.name}: the coordinator of {self._transactional_id!r} refused: {fault}"
        if isinstance(fault, ProducerFenced | StaleProducerEpoch):
            return StaleProducerEpoch(what)
        if isinstance(fault, NotInTransaction) and not self._knows_abortable:
            return InvalidTransactionState(what)
        return Unverified(what) if fault.retry else fault


def _not_asked(error: Exception) -> Fault:
    if isinstance(error, Fault) and not error.retry:
        return error
    return Unverified(f"the transaction coordinator could not be asked: {error or 'timed out'}")


def _refuse(questions: Sequence[Question], fault: Fault) -> None:
    for one in questions:
        one.guard.refused = fault
