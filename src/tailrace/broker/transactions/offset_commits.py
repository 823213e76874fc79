"""TxnOffsetCommit: offsets that a transaction commits for a group are written to the group's partition.

As for any partition that a transaction writes to (see `verification`), the transaction coordinator is asked first,
unless the partition is known to be part of the transaction. The result is valid until a marker is written or the leader
changes, because another leader may have written a marker that is not known here.
"""

from collections.abc import Mapping

from tailrace.broker.coordination.coordinator import partition_of
from tailrace.broker.groups.coordinator import GroupCoordinator
from tailrace.broker.groups.partition_coordinator import GroupPartitionCoordinator
from tailrace.broker.partitions.transaction_guards import Guard, Verifier
from tailrace.groups.groups import Groups
from tailrace.groups.offsets import Committed
from tailrace.groups.requests import MemberId
from tailrace.groups.turn import GroupTurn
from tailrace.model.faults import (
    ConcurrentTransactions,
    Fault,
    InvalidTransactionState,
    NotInTransaction,
    ProducerFenced,
    StaleProducerEpoch,
)
from tailrace.model.frozen import frozen
from tailrace.model.ids import PartitionName
from tailrace.model.topics import OFFSETS_TOPIC
from tailrace.transactions.transaction import Producer


@frozen
class TransactionalCommit:
    transactional_id: str
    producer: Producer
    group_id: str
    who: MemberId
    generation: int  # negative: not given
    adds: bool  # the broker adds partitions (transactions v2)
    knows_abortable: bool  # the client knows TRANSACTION_ABORTABLE


class OffsetCommits:
    """The group coordinator's side of transactional offset commits; `verifier` asks the transaction coordinators."""

    def __init__(self, groups: GroupCoordinator, verifier: Verifier) -> None:
        self._groups = groups
        self.verifier = verifier

    async def commit(self, wanted: TransactionalCommit, offsets: Mapping[PartitionName, Committed]) -> None:
        coordinator = self._groups.local(wanted.group_id)
        producer, known = wanted.producer, coordinator.pending_epoch(wanted.producer.id)
        if known is not None and producer.epoch < known:
            raise StaleProducerEpoch(f"producer epoch {producer.epoch} of {producer.id} is fenced by epoch {known}")
        guard = coordinator.guards.take(producer.id, producer.epoch, coordinator.epoch)
        try:
            if known != producer.epoch:
                await self._verify(wanted)
            # With v2 a marker written meanwhile is the previous transaction's: the epoch identifies this one.
            if wanted.adds and not guard.valid:
                guard.valid = True
                await self._verify(wanted)
            await _write(coordinator, wanted, offsets, guard)
        finally:
            coordinator.guards.give_back(guard)

    async def _verify(self, wanted: TransactionalCommit) -> None:
        topic = await self._groups.state_topic()
        place = PartitionName(OFFSETS_TOPIC, partition_of(wanted.group_id, len(topic.partitions)))
        refused = await self.verifier.verify(wanted.transactional_id, wanted.producer, [place], add=wanted.adds)
        for fault in refused.values():
            raise _refusal(wanted, fault)


def _refusal(wanted: TransactionalCommit, fault: Fault) -> Fault:
    """The fault that Kafka returns, as far as the client's version knows it."""
    if isinstance(fault, ProducerFenced):
        return StaleProducerEpoch(str(fault))
    if isinstance(fault, NotInTransaction) and not wanted.knows_abortable:
        return InvalidTransactionState(str(fault))
    return fault


async def _write(
    coordinator: GroupPartitionCoordinator,
    wanted: TransactionalCommit,
    offsets: Mapping[PartitionName, Committed],
    guard: Guard,
) -> None:
    def write(machine: Groups, turn: GroupTurn) -> None:
        if not guard.valid or guard.leader_epoch != coordinator.epoch:
            raise ConcurrentTransactions(f"the transaction of {wanted.transactional_id} ended during its verification")
        machine.commit_in_transaction(wanted.group_id, wanted.who, wanted.generation, wanted.producer, offsets, turn)

    await coordinator.act(write)
