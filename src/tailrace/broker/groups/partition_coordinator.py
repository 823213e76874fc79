"""One partition of `__consumer_offsets` and its groups, on the broker that leads it.

JoinGroup and SyncGroup may have to wait for other members: they hold a ticket, which some later turn answers. When
leadership is lost all tickets are: clients look for the new coordinator.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeVar

from tailrace.broker.coordination.partition_coordinator import PartitionCoordinator, Spawn
from tailrace.broker.groups.topics import ClusterTopics
from tailrace.broker.machines.runtime import Codec, MachineRuntime
from tailrace.broker.partitions.partition import Partition
from tailrace.broker.partitions.transaction_guards import Guards
from tailrace.broker.timers import sleep_then_read
from tailrace.groups.consumer.expressions import KnownMatches
from tailrace.groups.groups import Groups
from tailrace.groups.records import decode_entry, encode_entry
from tailrace.groups.requests import Answer
from tailrace.groups.rewriting import live_records_max, rewrite_groups, rewrite_offsets
from tailrace.groups.turn import GroupTurn, Rules
from tailrace.model.faults import Fault, NotCoordinator
from tailrace.model.ids import Epoch, PartitionName
from tailrace.model.proposal import TransactionEnded
from tailrace.ports import Ports

Ticket = asyncio.Future[Answer]

GROUPS_PER_TURN: Final = 100  # that are looked through for old offsets
CODEC: Final = Codec(encode_entry, decode_entry)
SAID_PER_TURN: Final = 1000  # of what is said once more
RESTATE_AGAIN_S: Final = 0.1
RESTATE_TRIES_MAX: Final = 50
T = TypeVar("T")


class GroupPartitionCoordinator(PartitionCoordinator[Groups, GroupTurn]):
    def __init__(self, partition: Partition, rules: Rules, topics: ClusterTopics, ports: Ports, spawn: Spawn) -> None:
        super().__init__(partition, Groups, CODEC, ports, spawn, topics.level)
        self.rules = rules
        self._topics = topics
        self._waiting: dict[Ticket, None] = {}
        self._served: MachineRuntime[Groups] | None = None  # the last that did: in one epoch they follow on each other
        self._missed: dict[str, Epoch] = {}  # topics that were deleted while it was read, and who led then
        partition.guards.on_marker = self._transaction_ended

    async def answered(self, handler: Callable[[Groups, Ticket, GroupTurn], None]) -> Answer:
        """Do something that is answered now or later, by whoever makes it possible; faults come out as raised."""
        ticket: Ticket = asyncio.get_running_loop().create_future()
        self._waiting[ticket] = None
        try:
            await self.act(lambda machine, turn: handler(machine, ticket, turn))
            return await ticket
        finally:
            self._waiting.pop(ticket, None)
            if ticket.done() and not ticket.cancelled():
                ticket.exception()  # seen: the same fault was raised already

    def untried(self, group_id: str, expression: str | None, tried: KnownMatches) -> dict[str, list[str]]:
        """Names that a member's next heartbeat would try expressions on, on the loop."""
        return self._serving().machine.names_to_match(group_id, expression, self._topics, tried)

    @property
    def guards(self) -> Guards:
        return self._term.partition.guards

    @property
    def epoch(self) -> Epoch:
        """Of who leads the partition."""
        return self._term.partition.epoch

    def pending_epoch(self, producer_id: int) -> int | None:
        """The epoch of a producer whose transaction is known to have this partition in it."""
        return self._serving().machine.pending.epoch_of(producer_id)

    def topics_gone(self, names: Iterable[str]) -> None:
        """Topics are deleted: note how far what was committed can be theirs. A log that is being read is all before."""
        if self._term.runtime is not None:
            self._term.runtime.machine.topics_deleted(names)
        else:
            self._missed.update(dict.fromkeys(names, self.epoch))

    async def expire(self) -> None:
        """Forget what need not be kept, some groups at a time."""
        self.topics_gone(self._topics.gone())  # what was committed while one was being deleted, too
        with suppress(Fault):  # the next look finds what is left; and whoever leads by now looks, too
            groups = await self.ask(lambda machine: list(machine.groups))
            for at in range(0, len(groups), GROUPS_PER_TURN):
                some = groups[at : at + GROUPS_PER_TURN]
                await self.act(partial(_expire, some))

    # Inside

    def _live_records_max(self, machine: Groups) -> int:
        return live_records_max(machine)

    async def _rewrite(self) -> bool:
        groups = await self.ask(lambda machine: list(machine.groups))
        for at in range(0, len(groups), GROUPS_PER_TURN):
            some = groups[at : at + GROUPS_PER_TURN]
            if not (
                await self._say(rewrite_groups, some) and await self._say(rewrite_offsets, await self._committed(some))
            ):
                return False
        return True

    async def _committed(self, groups: Sequence[str]) -> list[tuple[str, PartitionName]]:
        return await self.ask(lambda machine: [(one, place) for one in groups for place in machine.committed(one)])

    async def _say(self, say: Callable[[Groups, Sequence[T], GroupTurn], Sequence[T]], what: Sequence[T]) -> bool:
        """Say something of each. What cannot be said now is tried again: transactions end, and groups settle."""
        for at in range(0, len(what), SAID_PER_TURN):
            left = what[at : at + SAID_PER_TURN]
            for _ in range(RESTATE_TRIES_MAX):
                left = await self.act(partial(_said, say, left))
                if not left:
                    break
                await sleep_then_read(RESTATE_AGAIN_S)
            else:
                return False
        return True

    def _transaction_ended(self, producer_id: int, committed: bool) -> None:
        """A marker is in the log. While that is being read, it will be met there."""
        if self._term.runtime is not None:
            self._term.runtime.machine.replay(TransactionEnded(producer_id, committed))

    async def _begins(self, coordinator: MachineRuntime[Groups]) -> None:
        before, self._served = self._served, coordinator
        if before is not None and before is not coordinator and before.epoch == coordinator.epoch:
            coordinator.machine.inherit_deleted_topics(before.machine)
        missed = [name for name, epoch in self._missed.items() if epoch == coordinator.epoch]
        self._missed.clear()
        coordinator.machine.topics_deleted([*missed, *self._topics.gone()])
        await super()._begins(coordinator)

    def _turn(self, machine: Groups) -> GroupTurn:
        clock = self._ports.clock
        return GroupTurn(
            now=clock.monotonic(),
            wall_ms=clock.wall_ms(),
            rules=self.rules,
            alarms=machine.alarms,
            topics=self._topics,
            own_settings=self._topics.group_settings,
        )

    def _done(self, turn: GroupTurn) -> None:
        for ticket, answer in turn.answers:
            self._answer(ticket, answer)

    def _failed(self, turn: GroupTurn, fault: Fault) -> None:
        for ticket, _ in turn.answers:
            self._answer(ticket, fault)

    def _ends(self) -> None:
        super()._ends()
        for ticket in list(self._waiting):
            self._answer(ticket, NotCoordinator(f"this broker does not serve {self._term.partition.name} any more"))

    def _answer(self, ticket: Any, answer: Answer) -> None:
        if ticket.done():
            return
        if isinstance(answer, Fault):
            ticket.set_exception(answer)
        else:
            ticket.set_result(answer)


def _expire(groups: Sequence[str], machine: Groups, turn: GroupTurn) -> None:
    machine.expire(groups, turn)


def _said(
    say: Callable[[Groups, Sequence[T], GroupTurn], Sequence[T]], what: Sequence[T], machine: Groups, turn: GroupTurn
) -> Sequence[T]:
    return say(machine, what, turn)
