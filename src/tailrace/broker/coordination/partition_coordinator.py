"""One partition of a coordinator's topic and the machine over it, on the broker that leads it.

Requests go through `act`: the machine decides in a turn, what it wrote is appended and replayed, and what comes of the
turn besides, answers and messages, is done when that is committed. Time is a request like others: the machine sets
alarms, and when the first is due it takes a turn. When leadership is lost everything goes with it.

The log grows with every request, and whoever takes over reads all of it. So a coordinator says now and then once more
all that counts; the log says everything from where that began, and can be cut there (`Coordinator.keep_short`).
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final, Generic, Protocol, TypeVar

from tailrace.broker.machines.leadership_term import LeadershipTerm
from tailrace.broker.machines.runtime import Codec, MachineRuntime
from tailrace.broker.partitions.partition import Partition
from tailrace.broker.timers import after_reading
from tailrace.model.alarms import Alarms
from tailrace.model.faults import (
    CoordinatorLoading,
    CoordinatorUnavailable,
    Fault,
    NotCoordinator,
    NotLeader,
    StorageFailed,
    UnknownTopic,
)
from tailrace.model.ids import TopicPartition
from tailrace.model.proposal import Proposal
from tailrace.ports import Ports

RESTATED_AT_TIMES: Final = 4  # as many records as are needed

T = TypeVar("T")
Spawn = Callable[[Coroutine[Any, Any, None]], None]


class AnyTurn(Protocol):
    @property
    def records(self) -> list[Any]: ...


class TimedMachine(Protocol):
    """What a coordinator asks of a machine, besides what its requests do."""

    alarms: Alarms[Any]

    def replay(self, record: Any, /) -> None: ...
    def serve(self, turn: Any, /) -> None: ...
    def ring(self, turn: Any, /) -> None: ...


M = TypeVar("M", bound=TimedMachine)
U = TypeVar("U", bound=AnyTurn)


class PartitionCoordinator(Generic[M, U]):
    def __init__(
        self,
        partition: Partition,
        build: Callable[[], M],
        codec: Codec,
        ports: Ports,
        spawn: Spawn,
        level: Callable[[], int],
    ) -> None:
        """`level` tells the level of metadata.version, as committed: its records are written at it."""
        self._ports = ports
        self._spawn = spawn
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._term = LeadershipTerm(
            partition,
            build,
            codec,
            ports.clock,
            spawn,
            level=lambda _: level(),
            begins=self._begins,
            ends=self._ends,
        )

    @property
    def key(self) -> TopicPartition:
        return self._term.partition.key

    @property
    def is_taken(self) -> bool:
        """Whether this broker leads the partition, ready to serve or not."""
        return self._term.partition.leads

    def leader_changed(self) -> None:
        self._term.leader_changed()

    async def act(self, handler: Callable[[M, U], T]) -> T:
        """Let the machine do something; its result, and all that comes of it, when it is committed."""
        coordinator = self._serving()
        turn = self._turn(coordinator.machine)
        try:
            result = await coordinator.write(lambda machine: self._decide(machine, handler, turn))
        except Fault as fault:
            problem = as_coordinators(fault)
            self._failed(turn, problem)
            self._look_at(coordinator)
            raise problem from None
        self._done(turn)
        return result

    async def ask(self, question: Callable[[M], T]) -> T:
        """Look at the machine; the answer, when all that it may have seen is committed."""
        try:
            return await self._serving().read(question)
        except Fault as fault:
            raise as_coordinators(fault) from None

    async def restate(self, at_least: int) -> int | None:
        """Say all that counts once more, if the log has become long; from where on it says all. None: not now."""
        partition = self._term.partition
        epoch, log = partition.epoch, partition.log
        begin = log.producers.transactions.first_open(log.end)  # what is open counts where it was written
        length = begin - log.start
        if length < at_least:
            return None
        with suppress(Fault):
            is_long = length >= RESTATED_AT_TIMES * await self.ask(self._size)
            if is_long and await self._restate() and partition.epoch == epoch:  # else some of it may have been cut off
                return begin
        return None

    # What each kind of coordinator says

    def _size(self, machine: M) -> int:
        """How many records all that counts takes at most."""
        raise NotImplementedError

    async def _restate(self) -> bool:
        """Say all that counts once more; False: not all of it could be said."""
        raise NotImplementedError

    def _turn(self, machine: M) -> U:
        raise NotImplementedError

    def _done(self, turn: U) -> None:
        """What the machine decided is committed."""

    def _failed(self, turn: U, fault: Fault) -> None:
        """It is not."""

    # Inside

    def _serving(self) -> MachineRuntime[M]:
        if self._term.runtime is not None:
            return self._term.runtime
        if self.is_taken:
            raise CoordinatorLoading(f"{self._term.partition.name} is being read")
        raise NotCoordinator(f"this broker does not serve {self._term.partition.name}")

    def _decide(self, machine: M, handler: Callable[[M, U], T], turn: U) -> Proposal[T]:
        try:
            return Proposal(handler(machine, turn), turn.records)
        finally:
            self._set_timer(machine)

    def _look_at(self, coordinator: MachineRuntime[M]) -> None:
        """After a fault: is this the machine that the log says, and does it serve?"""
        if coordinator is self._term.runtime:
            if coordinator.is_broken:
                self._term.start_over()
            elif not self.is_taken:
                self.leader_changed()

    async def _begins(self, coordinator: MachineRuntime[M]) -> None:
        await self.act(lambda machine, turn: machine.serve(turn))

    def _ends(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set_timer(self, machine: M) -> None:
        """Look again when the first alarm may ring."""
        first = machine.alarms.first
        if first is None or (self._timer is not None and self._timer_at <= first):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = first
        delay_s = max(0.0, first - self._ports.clock.monotonic())
        self._timer = asyncio.get_running_loop().call_later(delay_s, after_reading, self._look)

    def _look(self) -> None:
        self._timer = None
        self._spawn(self._ring())

    async def _ring(self) -> None:
        with suppress(Fault):  # whoever was to be answered has been told
            await self.act(lambda machine, turn: machine.ring(turn))


def as_coordinators(fault: Fault) -> Fault:
    """What happens to a log, in the words of those who look for a coordinator."""
    match fault:
        case NotLeader() | UnknownTopic():
            return NotCoordinator(str(fault))
        case StorageFailed():
            return CoordinatorUnavailable(str(fault))
        case _:
            return fault
