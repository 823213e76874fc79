"""One partition of `__consumer_offsets` and its groups, on the broker that leads it.

Requests go through `act`: the machine decides, what it wrote is appended and replayed, and answers are given when that
is committed. JoinGroup and SyncGroup may have to wait for other members: they hold a ticket, which some later turn
answers. When leadership is lost all tickets are: clients look for the new coordinator. Time is a request like others.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeVar

from tailrace.broker.coordinator import Codec, Coordinator
from tailrace.broker.partition import Partition
from tailrace.broker.pauses import once_read
from tailrace.broker.tenure import Tenure
from tailrace.groups.groups import Groups
from tailrace.groups.records import decode_entry, encode_entry
from tailrace.groups.requests import Answer
from tailrace.groups.turn import Rules, Turn
from tailrace.model.faults import (
    CoordinatorLoading,
    CoordinatorUnavailable,
    Fault,
    NotCoordinator,
    NotLeader,
    StorageFailed,
    UnknownTopic,
)
from tailrace.model.proposal import Proposal
from tailrace.ports import Ports

T = TypeVar("T")
Waiting = asyncio.Future[Answer]

groups_per_turn: Final = 100  # that are looked through for old offsets
codec: Final = Codec(encode_entry, decode_entry)


class GroupSeat:
    def __init__(
        self, partition: Partition, rules: Rules, ports: Ports, spawn: Callable[[Coroutine[Any, Any, None]], None]
    ) -> None:
        self.rules = rules
        self._ports = ports
        self._spawn = spawn
        self._waiting: dict[Waiting, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._tenure = Tenure(partition, Groups, codec, ports.clock, spawn, begins=self._begins, ends=self._ends)

    @property
    def is_taken(self) -> bool:
        """Whether this broker leads the partition, ready to serve or not."""
        return self._tenure.partition.leads

    def leader_changed(self) -> None:
        self._tenure.leader_changed()

    async def act(self, handler: Callable[[Groups, Turn], T]) -> T:
        """Let the machine do something; its result, and everybody's answers, when all that is committed."""
        coordinator = self._serving()
        turn = self._turn(coordinator.machine)
        try:
            result = await coordinator.write(lambda machine: self._decide(machine, handler, turn))
        except Fault as fault:
            problem = as_coordinators(fault)
            for ticket, _ in turn.answers:
                self._answer(ticket, problem)
            self._look_at(coordinator)
            raise problem from None
        for ticket, answer in turn.answers:
            self._answer(ticket, answer)
        return result

    async def ask(self, question: Callable[[Groups], T]) -> T:
        """Look at the machine; the answer, when all that it may have seen is committed."""
        try:
            return await self._serving().read(question)
        except Fault as fault:
            raise as_coordinators(fault) from None

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

    async def expire(self, is_gone: Callable[[str], bool]) -> None:
        """Forget what need not be kept, some groups at a time."""
        with suppress(Fault):  # whoever leads by now looks, too
            groups = await self.ask(lambda machine: list(machine.groups))
            for at in range(0, len(groups), groups_per_turn):
                some = groups[at : at + groups_per_turn]
                await self.act(partial(_expire, some, is_gone))

    # Inside

    def _serving(self) -> Coordinator[Groups]:
        if self._tenure.coordinator is not None:
            return self._tenure.coordinator
        if self.is_taken:
            raise CoordinatorLoading(f"{self._tenure.partition.name} is being read")
        raise NotCoordinator(f"this broker does not serve {self._tenure.partition.name}")

    def _decide(self, machine: Groups, handler: Callable[[Groups, Turn], T], turn: Turn) -> Proposal[T]:
        try:
            return Proposal(handler(machine, turn), turn.records)
        finally:
            self._set_timer(machine)

    def _look_at(self, coordinator: Coordinator[Groups]) -> None:
        """After a fault: is this the machine that the log says, and does it serve?"""
        if coordinator is self._tenure.coordinator:
            if coordinator.is_broken:
                self._tenure.start_over()
            elif not self.is_taken:
                self.leader_changed()

    def _turn(self, machine: Groups) -> Turn:
        clock = self._ports.clock
        return Turn(now=clock.monotonic(), wall_ms=clock.wall_ms(), rules=self.rules, alarms=machine.alarms)

    async def _begins(self, coordinator: Coordinator[Groups]) -> None:
        await self.act(lambda machine, turn: machine.serve(turn))

    def _ends(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for ticket in list(self._waiting):
            self._answer(ticket, NotCoordinator(f"this broker does not serve {self._tenure.partition.name} any more"))

    def _answer(self, ticket: Any, answer: Answer) -> None:
        if ticket.done():
            return
        if isinstance(answer, Fault):
            ticket.set_exception(answer)
        else:
            ticket.set_result(answer)

    def _set_timer(self, machine: Groups) -> None:
        """Look again when the first alarm may ring."""
        first = machine.alarms.first
        if first is None or (self._timer is not None and self._timer_at <= first):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = first
        delay_s = max(0.0, first - self._ports.clock.monotonic())
        self._timer = asyncio.get_running_loop().call_later(delay_s, once_read, self._look)

    def _look(self) -> None:
        self._timer = None
        self._spawn(self._ring())

    async def _ring(self) -> None:
        with suppress(Fault):  # whoever was to be answered has been told
            await self.act(lambda machine, turn: machine.ring(turn))


def _expire(groups: Sequence[str], is_gone: Callable[[str], bool], machine: Groups, turn: Turn) -> None:
    machine.expire(groups, is_gone, turn)


def as_coordinators(fault: Fault) -> Fault:
    """What happens to a log, in the words of those who look for a coordinator."""
    match fault:
        case NotLeader() | UnknownTopic():
            return NotCoordinator(str(fault))
        case StorageFailed():
            return CoordinatorUnavailable(str(fault))
        case _:
            return fault
