"""One partition of a coordinator's state topic and its state machine, on the broker that leads it.

Requests go through `act`: the machine processes one in a turn, the turn's records are appended and replayed, and its
other results, answers and messages, are sent when the records are committed. Timeouts work the same way: the machine
sets alarms, and when the first is due it gets a turn. When leadership is lost all of this is dropped.

The log grows with every request, and a new leader replays all of it. So a coordinator from time to time rewrites its
live state: the log is then complete from where that began, and can start there (`Coordinator.keep_logs_short`).
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

REWRITTEN_AT_TIMES: Final = 4  # the log is rewritten when it has this many times the live records

T = TypeVar("T")
Spawn = Callable[[Coroutine[Any, Any, None]], None]


class AnyTurn(Protocol):
    @property
    def records(self) -> list[Any]: ...


class TimedMachine(Protocol):
    """What every coordinator needs of its machine, besides the handlers of requests."""

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
        """`level` returns the committed level of metadata.version, at which records are written."""
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
    def leads(self) -> bool:
        """Whether this broker leads the partition, even if the machine is still being loaded."""
        return self._term.partition.leads

    def leader_changed(self) -> None:
        self._term.leader_changed()

    async def act(self, handler: Callable[[M, U], T]) -> T:
        """Give the machine a turn; returns the handler's result when the turn's records are committed."""
        coordinator = self._serving()
        turn = self._turn(coordinator.machine)
        try:
            result = await coordinator.write(lambda machine: self._decide(machine, handler, turn))
        except Fault as fault:
            problem = as_coordinator_fault(fault)
            self._failed(turn, problem)
            self._check_runtime(coordinator)
            raise problem from None
        self._done(turn)
        return result

    async def ask(self, question: Callable[[M], T]) -> T:
        """Read the machine; returns the answer when everything it may have seen is committed."""
        try:
            return await self._serving().read(question)
        except Fault as fault:
            raise as_coordinator_fault(fault) from None

    async def rewrite(self, at_least: int) -> int | None:
        """Append the live state once more, if the log has become long; the offset from which the log is complete, or
        None if it was not done."""
        partition = self._term.partition
        epoch, log = partition.epoch, partition.log
        # Records of open transactions are not rewritten, so the log must not start behind them.
        begin = log.producers.transactions.first_open(log.end)
        length = begin - log.start
        if length < at_least:
            return None
        with suppress(Fault):
            is_long = length >= REWRITTEN_AT_TIMES * await self.ask(self._live_records_max)
            # In another epoch some of what was rewritten may have been truncated.
            if is_long and await self._rewrite() and partition.epoch == epoch:
                return begin
        return None

    # For each kind of coordinator to implement

    def _live_records_max(self, machine: M) -> int:
        """The most records that the live state can take."""
        raise NotImplementedError

    async def _rewrite(self) -> bool:
        """Append all of the live state once more; False if some of it could not be."""
        raise NotImplementedError

    def _turn(self, machine: M) -> U:
        raise NotImplementedError

    def _done(self, turn: U) -> None:
        """The records of the turn are committed."""

    def _failed(self, turn: U, fault: Fault) -> None:
        """The records of the turn could not be appended or committed."""

    # Inside

    def _serving(self) -> MachineRuntime[M]:
        if self._term.runtime is not None:
            return self._term.runtime
        if self.leads:
            raise CoordinatorLoading(f"{self._term.partition.name} is being read")
        raise NotCoordinator(f"this broker does not serve {self._term.partition.name}")

    def _decide(self, machine: M, handler: Callable[[M, U], T], turn: U) -> Proposal[T]:
        try:
            return Proposal(handler(machine, turn), turn.records)
        finally:
            self._set_timer(machine)

    def _check_runtime(self, coordinator: MachineRuntime[M]) -> None:
        """After a fault: rebuild the machine if it may differ from the log; drop it if leadership is lost."""
        if coordinator is self._term.runtime:
            if coordinator.is_broken:
                self._term.start_over()
            elif not self.leads:
                self.leader_changed()

    async def _begins(self, coordinator: MachineRuntime[M]) -> None:
        await self.act(lambda machine, turn: machine.serve(turn))

    def _ends(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set_timer(self, machine: M) -> None:
        """Set the timer to the machine's first alarm."""
        first = machine.alarms.first
        if first is None or (self._timer is not None and self._timer_at <= first):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = first
        delay_s = max(0.0, first - self._ports.clock.monotonic())
        self._timer = asyncio.get_running_loop().call_later(delay_s, after_reading, self._alarm_due)

    def _alarm_due(self) -> None:
        self._timer = None
        self._spawn(self._ring())

    async def _ring(self) -> None:
        with suppress(Fault):  # clients that were to be answered have got the fault
            await self.act(lambda machine, turn: machine.ring(turn))


def as_coordinator_fault(fault: Fault) -> Fault:
    """The fault of a partition as the coordinator errors that clients expect."""
    match fault:
        case NotLeader() | UnknownTopic():
            return NotCoordinator(str(fault))
        case StorageFailed():
            return CoordinatorUnavailable(str(fault))
        case _:
            return fault
