"""Bugs to plant in consumer groups and transactions, in their coordinators and in partitions; see `planted`."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace

from tailrace.broker.machines.runtime import M, MachineRuntime
from tailrace.broker.partitions import partition as partitions
from tailrace.broker.partitions.offset_waiters import WhenReached
from tailrace.broker.transactions.verification import Verification
from tailrace.groups.classic.group import ClassicGroup
from tailrace.groups.consumer import reconciling
from tailrace.groups.consumer.group import ConsumerGroup
from tailrace.groups.consumer.member import ConsumerMember, CurrentAssignment
from tailrace.groups.consumer.partition_sets import PartitionSet
from tailrace.groups.consumer.states import Step
from tailrace.groups.replayed_groups import ReplayedGroups
from tailrace.log.log import Log
from tailrace.log.recovery import recovery
from tailrace.log.state.aborted_index import AbortedIndexes
from tailrace.transactions.states import State
from tailrace.transactions.transactions import Transactions
from tailrace.transactions.turn import TransactionTurn
from tests.simulation.planting import Mutant, replaced


def late_marker_hits_the_next_transaction() -> AbstractContextManager[None]:
    """A partition writes every marker, also one that arrives late and repeats an old one."""
    return replaced(partitions, "marker_is_due", lambda *_: True)


def stable_offset_past_open_transactions() -> AbstractContextManager[None]:
    return replaced(Log, "last_stable", lambda log, high_watermark: high_watermark)


def aborted_transactions_forgotten_at_a_start() -> AbstractContextManager[None]:
    return replaced(recovery, "aborted_at_open", lambda *_: AbortedIndexes())


@contextmanager
def transactions_not_verified() -> Iterator[None]:
    """A late batch opens a transaction that its coordinator does not know (KIP-890)."""
    with (
        replaced(Verification, "is_needed", property(lambda _: False)),
        replaced(partitions, "require_part_of_transaction", lambda *_: None),
    ):
        yield


def decisions_forgotten_by_the_next_coordinator() -> AbstractContextManager[None]:
    def serve(machine: Transactions, turn: TransactionTurn) -> None:
        for transaction in list(machine.transactions.values()):
            if transaction.state is State.ONGOING:
                machine._set_timeout(transaction, turn)

    return replaced(Transactions, "serve", serve)


def offsets_of_aborted_transactions_count() -> AbstractContextManager[None]:
    right = ReplayedGroups._end_transaction

    def end(groups: ReplayedGroups, producer_id: int, is_committed: bool) -> None:
        right(groups, producer_id, True)

    return replaced(ReplayedGroups, "_end_transaction", end)


@contextmanager
def coordinator_answers_before_it_is_committed() -> Iterator[None]:
    async def settled(coordinator: MachineRuntime[M]) -> None:
        coordinator._require_leadership()

    def when_settled(coordinator: MachineRuntime[M], done: WhenReached) -> None:
        done(None)

    with replaced(MachineRuntime, "settled", settled), replaced(MachineRuntime, "when_settled", when_settled):
        yield


def commits_of_an_old_generation() -> AbstractContextManager[None]:
    return replaced(ClassicGroup, "require_generation", lambda group, generation: None)


def partitions_given_before_they_are_given_up() -> AbstractContextManager[None]:
    """KIP-848: a member gets its whole target assignment at once, before the current owners have revoked it."""
    right = reconciling._next

    def go_on(
        group: ConsumerGroup, member: ConsumerMember, owned: PartitionSet | None, is_sure: bool
    ) -> tuple[Step, CurrentAssignment]:
        step, current = right(group, member, owned, is_sure)
        if step is not Step.WAIT:
            return step, current
        return step, replace(current, assigned=group.target.get(member.id, ()))

    return replaced(reconciling, "_next", go_on)


MUTANTS: tuple[Mutant, ...] = (
    late_marker_hits_the_next_transaction,
    stable_offset_past_open_transactions,
    aborted_transactions_forgotten_at_a_start,
    transactions_not_verified,
    decisions_forgotten_by_the_next_coordinator,
    offsets_of_aborted_transactions_count,
    coordinator_answers_before_it_is_committed,
    commits_of_an_old_generation,
    partitions_given_before_they_are_given_up,
)
