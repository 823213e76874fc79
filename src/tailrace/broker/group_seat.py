"""One partition of `__consumer_offsets` and its groups, on the broker that leads it.

JoinGroup and SyncGroup may have to wait for other members: they hold a ticket, which some later turn answers. When
leadership is lost all tickets are: clients look for the new coordinator.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

from tailrace.broker.coordinator import Codec
from tailrace.broker.group_topics import ClusterTopics
from tailrace.broker.partition import Partition
from tailrace.broker.seat import Seat, Spawn
from tailrace.broker.verifying import Guards
from tailrace.groups.groups import Groups
from tailrace.groups.offsets import Place
from tailrace.groups.records import decode_entry, encode_entry
from tailrace.groups.requests import Answer
from tailrace.groups.restating import restate, restate_offsets, size
from tailrace.groups.turn import Rules, Turn
from tailrace.model.faults import Fault, NotCoordinator
from tailrace.model.proposal import TransactionEnded
from tailrace.ports import Ports

Waiting = asyncio.Future[Answer]

groups_per_turn: Final = 100  # that are looked through for old offsets
codec: Final = Codec(encode_entry, decode_entry)
offsets_per_turn: Final = 1000  # that are said once more
restated_at_times: Final = 4  # as many records as are needed


class GroupSeat(Seat[Groups, Turn]):
    def __init__(self, partition: Partition, rules: Rules, topics: ClusterTopics, ports: Ports, spawn: Spawn) -> None:
        super().__init__(partition, Groups, codec, ports, spawn)
        self.rules = rules
        self._topics = topics
        self._waiting: dict[Waiting, None] = {}
        partition.guards.on_marker = self._transaction_ended

    async def answered(self, handler: Callable[[Groups, Waiting, Turn], None]) -> Answer:
        """Do something that is answered now or later, by whoever makes it possible; faults come out as raised."""
        ticket: Waiting = asyncio.get_running_loop().create_future()
        self._waiting[ticket] = None
        try:
            await self.act(lambda machine, turn: handler(machine, ticket, turn))
            return await ticket
        finally:
            self._waiting.pop(ticket, None)
            if ticket.done() and not ticket.cancelled():
                ticket.exception()  # seen: the same fault was raised already

    @property
    def guards(self) -> Guards:
        return self._tenure.partition.guards

    def pending_epoch(self, producer_id: int) -> int | None:
        """The epoch of a producer whose transaction is known to have this partition in it."""
        return self._serving().machine.pending.epoch_of(producer_id)

    async def expire(self, is_gone: Callable[[str], bool]) -> None:
        """Forget what need not be kept, some groups at a time."""
        with suppress(Fault):  # whoever leads by now looks, too
            groups = await self.ask(lambda machine: list(machine.groups))
            for at in range(0, len(groups), groups_per_turn):
                some = groups[at : at + groups_per_turn]
                await self.act(partial(_expire, some, is_gone))

    async def restate(self, at_least: int) -> int | None:
        """Say all that counts once more, if the log has become long; from where on it says all. None: not now."""
        log = self._tenure.partition.log
        begin, length = log.end, log.end - log.start
        with suppress(Fault):
            needed = await self.ask(size)
            if length < max(at_least, restated_at_times * needed) or await self.ask(has_pending):
                return None
            groups = await self.ask(lambda machine: list(machine.groups))
            for at in range(0, len(groups), groups_per_turn):
                if not await self._restate_some(groups[at : at + groups_per_turn]):
                    return None
            return begin
        return None

    async def _restate_some(self, groups: Sequence[str]) -> bool:
        if not await self.act(lambda machine, turn: restate(machine, groups, turn)):
            return False
        places = await self.ask(lambda machine: [(one, place) for one in groups for place in machine.committed(one)])
        for at in range(0, len(places), offsets_per_turn):
            if not await self.act(partial(_restate_offsets, places[at : at + offsets_per_turn])):
                return False
        return True

    # Inside

    def _transaction_ended(self, producer_id: int, committed: bool) -> None:
        """A marker is in the log. While that is being read, it will be met there."""
        if self._tenure.coordinator is not None:
            self._tenure.coordinator.machine.replay(TransactionEnded(producer_id, committed))

    def _turn(self, machine: Groups) -> Turn:
        clock = self._ports.clock
        return Turn(
            now=clock.monotonic(),
            wall_ms=clock.wall_ms(),
            rules=self.rules,
            alarms=machine.alarms,
            topics=self._topics,
            own_settings=self._topics.group_settings,
        )

    def _done(self, turn: Turn) -> None:
        for ticket, answer in turn.answers:
            self._answer(ticket, answer)

    def _failed(self, turn: Turn, fault: Fault) -> None:
        for ticket, _ in turn.answers:
            self._answer(ticket, fault)

    def _ends(self) -> None:
        super()._ends()
        for ticket in list(self._waiting):
            self._answer(ticket, NotCoordinator(f"this broker does not serve {self._tenure.partition.name} any more"))

    def _answer(self, ticket: Any, answer: Answer) -> None:
        if ticket.done():
            return
        if isinstance(answer, Fault):
            ticket.set_exception(answer)
        else:
            ticket.set_result(answer)


def _expire(groups: Sequence[str], is_gone: Callable[[str], bool], machine: Groups, turn: Turn) -> None:
    machine.expire(groups, is_gone, turn)


def _restate_offsets(places: Sequence[tuple[str, Place]], machine: Groups, turn: Turn) -> bool:
    return restate_offsets(machine, places, turn)


def has_pending(machine: Groups) -> bool:
    """Whether a transaction has committed offsets, and has not ended: they count where they were written."""
    return not machine.pending.is_empty
