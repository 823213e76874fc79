"""One partition of `__consumer_offsets` and its groups, on the broker that leads it.

JoinGroup and SyncGroup may have to wait for other members: such a request holds a ticket (a future), which a later turn
of the machine resolves. When leadership is lost all tickets fail with `NotCoordinator`, so clients find the new one.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeVar

from tailrace.broker.coordination.partition_coordinator import PartitionCoordinator, Spawn
from tailrace.broker.groups.share_state_work import ShareStateCalls, ShareStateWorker
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
from tailrace.model.faults import Fault, NotCoordinator, TimedOut
from tailrace.model.ids import Epoch, PartitionName, TopicPartition
from tailrace.model.proposal import TransactionEnded
from tailrace.ports import Ports

Ticket = asyncio.Future[Answer]

GROUPS_PER_TURN: Final = 100  # checked for expired offsets, or rewritten
CODEC: Final = Codec(encode_entry, decode_entry)
REWRITTEN_PER_TURN: Final = 1000
REWRITE_RETRY_S: Final = 0.1
REWRITE_TRIES_MAX: Final = 50
SHARE_STATE_SETTLED_WITHIN_S: Final = 10.0
T = TypeVar("T")


class GroupPartitionCoordinator(PartitionCoordinator[Groups, GroupTurn]):
    def __init__(
        self,
        partition: Partition,
        rules: Rules,
        topics: ClusterTopics,
        ports: Ports,
        spawn: Spawn,
        share_calls: ShareStateCalls,
        share_retry_max_s: float,
    ) -> None:
        super().__init__(partition, Groups, CODEC, ports, spawn, topics.level)
        self.rules = rules
        self._topics = topics
        self._waiting: dict[Ticket, None] = {}
        # The last runtime that served; one that replaces it in the same epoch takes over its deleted topics.
        self._last_runtime: MachineRuntime[Groups] | None = None
        self._deleted_while_loading: dict[str, Epoch] = {}  # topics, and the leader epoch at that time
        self._share_worker = ShareStateWorker(self.act, lambda: self.leads, share_calls, spawn, share_retry_max_s)
        partition.guards.on_marker = self._transaction_ended

    async def answered(self, handler: Callable[[Groups, Ticket, GroupTurn], None]) -> Answer:
        """Run a handler whose answer may come in a later turn, when other members have arrived; raises its fault."""
        ticket: Ticket = asyncio.get_running_loop().create_future()
        self._waiting[ticket] = None
        try:
            await self.act(lambda machine, turn: handler(machine, ticket, turn))
            answer = await ticket
        finally:
            self._waiting.pop(ticket, None)
        if isinstance(answer, Fault):
            raise answer
        return answer

    def names_to_match(self, group_id: str, expression: str | None, tried: KnownMatches) -> dict[str, list[str]]:
        """Topic names that a member's next heartbeat would match against regular expressions, blocking the loop."""
        return self._serving().machine.names_to_match(group_id, expression, self._topics, tried)

    async def share_state_settled(
        self, group_id: str, partitions: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, Fault]:
        """Wait until these partitions of a share group are initialized, or their state is deleted; returns the faults
        of those that are not in time. The coordinator continues to try."""
        deadline = self._ports.clock.monotonic() + SHARE_STATE_SETTLED_WITHIN_S
        while True:
            ended = self._share_worker.next_end(group_id)
            left = await self.ask(lambda machine: machine.unsettled_share_state(group_id, partitions))
            if not left:
                return {}
            try:
                async with asyncio.timeout(deadline - self._ports.clock.monotonic()):
                    await asyncio.shield(ended)
            except TimeoutError:
                faults = self._share_worker.faults.get(group_id, {})
                return {
                    one: faults.get(one) or TimedOut(f"{one} of share group {group_id}: not in time") for one in left
                }

    async def delete(self, group_id: str) -> None:
        """Delete a group without members: of a share group first the state of its partitions."""
        partitions = await self.act(lambda machine, turn: machine.prepare_delete(group_id, turn))
        if partitions:
            for fault in (await self.share_state_settled(group_id, partitions)).values():
                raise fault
        await self.act(lambda machine, turn: machine.delete(group_id, turn))

    @property
    def guards(self) -> Guards:
        return self._term.partition.guards

    @property
    def epoch(self) -> Epoch:
        """The leader epoch of the partition."""
        return self._term.partition.epoch

    def pending_epoch(self, producer_id: int) -> int | None:
        """The epoch of a producer with pending transactional offsets here; None if it has none."""
        return self._serving().machine.pending.epoch_of(producer_id)

    def topics_deleted(self, names: Iterable[str]) -> None:
        """Topics were deleted: offsets committed for them so far are invalid, also in a log still being loaded."""
        if self._term.runtime is not None:
            self._term.runtime.machine.topics_deleted(names)
        else:
            self._deleted_while_loading.update(dict.fromkeys(names, self.epoch))

    async def expire(self) -> None:
        """Remove expired offsets and groups, some groups per turn."""
        self.topics_deleted(self._topics.deleted())  # also offsets committed while a topic was being deleted
        with suppress(Fault):  # the next run, or a new leader's, continues
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
            if not await self._rewrite_all(rewrite_groups, some):
                return False
            if not await self._rewrite_all(rewrite_offsets, await self._committed(some)):
                return False
        return True

    async def _committed(self, groups: Sequence[str]) -> list[tuple[str, PartitionName]]:
        return await self.ask(lambda machine: [(one, place) for one in groups for place in machine.committed(one)])

    async def _rewrite_all(
        self, rewrite: Callable[[Groups, Sequence[T], GroupTurn], Sequence[T]], items: Sequence[T]
    ) -> bool:
        """Rewrite all items. Those that cannot be now are retried: open transactions end, and rebalances complete."""
        for at in range(0, len(items), REWRITTEN_PER_TURN):
            left = items[at : at + REWRITTEN_PER_TURN]
            for _ in range(REWRITE_TRIES_MAX):
                left = await self.act(partial(_rewrite_some, rewrite, left))
                if not left:
                    break
                await sleep_then_read(REWRITE_RETRY_S)
            else:
                return False
        return True

    def _transaction_ended(self, producer_id: int, committed: bool) -> None:
        """A marker was written. If the log is still being loaded, the machine will replay it from there."""
        if self._term.runtime is not None:
            self._term.runtime.machine.replay(TransactionEnded(producer_id, committed))

    async def _begins(self, coordinator: MachineRuntime[Groups]) -> None:
        before, self._last_runtime = self._last_runtime, coordinator
        if before is not None and before is not coordinator and before.epoch == coordinator.epoch:
            coordinator.machine.inherit_deleted_topics(before.machine)
        missed = [name for name, epoch in self._deleted_while_loading.items() if epoch == coordinator.epoch]
        self._deleted_while_loading.clear()
        coordinator.machine.topics_deleted([*missed, *self._topics.deleted()])
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
        for group_id in turn.unsettled_groups:
            self._share_worker.start(group_id)

    def _failed(self, turn: GroupTurn, fault: Fault) -> None:
        for ticket, _ in turn.answers:
            self._answer(ticket, fault)

    def _ends(self) -> None:
        super()._ends()
        for ticket in list(self._waiting):
            self._answer(ticket, NotCoordinator(f"this broker no longer leads {self._term.partition.name}"))

    def _answer(self, ticket: Any, answer: Answer) -> None:
        """A fault is a result of the ticket: as its exception it would have to be retrieved, even if nobody waits."""
        if not ticket.done():
            ticket.set_result(answer)


def _expire(groups: Sequence[str], machine: Groups, turn: GroupTurn) -> None:
    machine.expire(groups, turn)


def _rewrite_some(
    rewrite: Callable[[Groups, Sequence[T], GroupTurn], Sequence[T]],
    items: Sequence[T],
    machine: Groups,
    turn: GroupTurn,
) -> Sequence[T]:
    return rewrite(machine, items, turn)
