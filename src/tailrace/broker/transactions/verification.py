"""One request's questions to its coordinator: for each partition on which it may begin a transaction.

All are asked at once, and again for a moment while the coordinator still ends the producer's transaction before. What
it could not be asked, or cannot say yet, is refused so that every client sends the same again.

A producer of transactions v2 goes on as soon as its end is decided, so the marker of the transaction before often comes
between question and answer. Its epoch says which transaction is meant: it can be asked for once more, under a new
guard. Before v2 a batch that was late would get into the next transaction that way, so it is refused.
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

ANSWERED_WITHIN_S: Final = 10.0
ASK_AGAIN_S: Final = 0.02
ASK_AGAIN_MAX: Final = 10


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
    def is_open(self) -> bool:
        producers = self.partition.log.producers
        return not is_in_transaction(producers, self.producer_id, self.producer_epoch)


class Verification:
    """`adds`: partitions are made part of the transaction; `says_abortable`: the client knows that error."""

    def __init__(self, transactional_id: str, *, adds: bool, says_abortable: bool) -> None:
        self._transactional_id = transactional_id
        self._adds = adds
        self._says_abortable = says_abortable
        self._questions: list[Question] = []

    def guard(self, partition: Partition, header: BatchHeader) -> Guard:
        """What lets a batch into a partition, once all that is needed is asked."""
        guard = partition.guards.take(header.producer_id, header.producer_epoch, partition.epoch)
        self._questions.append(Question(partition, header.producer_id, header.producer_epoch, guard))
        return guard

    @property
    def is_needed(self) -> bool:
        return any(one.is_open for one in self._questions)

    def done(self) -> None:
        for one in self._questions:
            one.partition.guards.give_back(one.guard)

    async def ask(self, verifier: Verifier) -> None:
        left = [one for one in self._questions if one.is_open]
        if any(one[1:3] != left[0][1:3] for one in left):
            _refuse(left, InvalidRequest("a request with transactional batches of more than one producer"))
            return
        for again in range(ASK_AGAIN_MAX + 1):
            try:
                async with asyncio.timeout(ANSWERED_WITHIN_S):
                    refused = await self._asked(verifier, left)
            except (Fault, Unreachable, TimeoutError) as error:
                _refuse(left, _not_asked(error))
                return
            left = self._learn(left, refused)
            if not left:
                return
            if refused and again < ASK_AGAIN_MAX:
                await asyncio.sleep(ASK_AGAIN_S)
        _refuse(left, Unverified("the producer's transaction before this one is still being ended"))

    async def _asked(self, verifier: Verifier, questions: Sequence[Question]) -> Mapping[PartitionName, Fault]:
        _, producer_id, producer_epoch, _ = questions[0]
        if self._adds:
            for one in questions:
                one.guard.valid = True  # what came before this question does not count
        names = [one.name for one in questions]
        return await verifier.verify(self._transactional_id, producer_id, producer_epoch, names, add=self._adds)

    def _learn(self, questions: Sequence[Question], refused: Mapping[PartitionName, Fault]) -> list[Question]:
        """Take in what was answered; those that have to be asked again."""
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
        what = f"{question.partition.name}: coordinator of {self._transactional_id!r}: {fault}"
        if isinstance(fault, ProducerFenced | StaleProducerEpoch):
            return StaleProducerEpoch(what)
        if isinstance(fault, NotInTransaction) and not self._says_abortable:
            return InvalidTransactionState(what)
        return Unverified(what) if fault.retry else fault


def _not_asked(error: Exception) -> Fault:
    if isinstance(error, Fault) and not error.retry:
        return error
    return Unverified(f"the coordinator of the transaction could not be asked: {error or 'it took too long'}")


def _refuse(questions: Sequence[Question], fault: Fault) -> None:
    for one in questions:
        one.guard.refused = fault
