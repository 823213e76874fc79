"""One partition of a coordinator's state topic and its state machine, on the broker that leads it.

Requests go through `act`: the machine processes one in a turn, the turn's records are appended and replayed, and its
other results, answers and messages, are sent when the records are committed. Timeouts work the same way: the machine
sets alarms, and when the first is due it gets a turn. When leadership is lost all of this is dropped.

Frequent requests go through `act_soon`: those of one turn of the loop are processed one after the other, their records
are appended as one batch, and one waiter releases all answers. Each still has its own result or fault; only a batch
that cannot be appended or committed fails all of them.

The log grows with every request, and a new leader replays all of it. So a coordinator from time to time rewrites its
live state: the log is then complete from where that began, and can start there (`Coordinator.keep_logs_short`).
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, Generic, Protocol, TypeVar

from tailrace.broker.machines.gathered_records import GatheredRecords
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
from tailrace.model.limits import COORDINATOR_BATCH_MAX_RECORDS
from tailrace.ports import Ports

REWRITTEN_AT_TIMES: Final = 4  # the log is rewritten when it has this many times the live records

T = TypeVar("T")
Spawn = Callable[[Coroutine[Any, Any, None]], None]
Done = Callable[[Any, Exception | None], None]  # called with a request's result, or with its fault


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


class Request(Generic[M, U]):
    """A request on its way through the machine."""

    __slots__ = ("done", "fault", "handler", "result", "turn")

    def __init__(self, handler: Callable[[M, U], Any], done: Done) -> None:
        self.handler = handler
        self.done = done
        self.turn: U | None = None
        self.result: Any = None
        self.fault: Exception | None = None  # a `Fault`, or an error of our own


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
        self._queued: deque[Request[M, U]] = deque()  # for the batch of this turn of the loop
        self._turns_scheduled = False
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

    @property
    def machine(self) -> M | None:
        """The state machine; None while this broker does not serve it."""
        return None if self._term.runtime is None else self._term.runtime.machine

    def leader_changed(self) -> None:
        self._term.leader_changed()

    async def act(self, handler: Callable[[M, U], T]) -> T:
        """Give the machine a turn now; returns the handler's result when the turn's records are committed."""
        answered: asyncio.Future[tuple[T, Exception | None]] = asyncio.get_running_loop().create_future()
        self._take_turns(deque([Request(handler, partial(_answer, answered))]))
        result, fault = await answered
        try:
            if fault is not None:
                raise fault
        finally:
            del answered, fault  # a fault refers to this frame: together they would be a reference cycle
        return result

    def act_soon(self, handler: Callable[[M, U], object], done: Done) -> None:
        """As `act`, in one batch with all other requests of this turn of the loop, and with a callback. Raises the
        fault if the machine does not serve."""
        self._serving()
        self._queued.append(Request(handler, done))
        self._schedule_turns()

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
            raise CoordinatorLoading(f"{self._term.partition.name} is being loaded")
        raise NotCoordinator(f"this broker does not lead {self._term.partition.name}")

    def _schedule_turns(self) -> None:
        if not self._turns_scheduled:
            self._turns_scheduled = True
            asyncio.get_running_loop().call_soon(self._take_queued_turns)

    def _take_queued_turns(self) -> None:
        """An answer may bring the next request of its client at once, which is then queued for the next turn."""
        self._turns_scheduled = False
        self._take_turns(self._queued)
        if self._queued:
            self._schedule_turns()

    def _take_turns(self, requests: "deque[Request[M, U]]") -> None:
        """Give the machine a turn for each request, and append the records of all turns together. Requests beyond
        what a batch may hold are left in the queue."""
        coordinator: MachineRuntime[M] | None = None
        taken: list[Request[M, U]] = []
        try:
            coordinator = self._serving()
            gathered = coordinator.gather()
            while requests and gathered.count < COORDINATOR_BATCH_MAX_RECORDS:
                request = requests.popleft()
                taken.append(request)
                self._take_turn(request, coordinator, gathered)
            self._set_timer(coordinator.machine)
            coordinator.append(gathered)
        except Exception as problem:  # an error of our own, too, must leave no request without an answer
            if coordinator is not None and not isinstance(problem, Fault):
                coordinator.is_broken = True  # it may have replayed records that were not appended
            taken += requests
            requests.clear()
            self._settled(coordinator, taken, problem.with_traceback(None))
            return
        coordinator.when_settled(partial(self._settled, coordinator, taken))

    def _take_turn(self, request: "Request[M, U]", coordinator: MachineRuntime[M], gathered: GatheredRecords) -> None:
        """A refused request has its own fault, and changes nothing for the others."""
        request.turn = turn = self._turn(coordinator.machine)
        try:
            request.result = self._decide(coordinator.machine, request.handler, turn)
            if turn.records:
                coordinator.apply(turn.records, gathered)
        except Fault as fault:
            request.fault = as_coordinator_fault(fault).with_traceback(None)
        except Exception as error:
            request.fault = error

    def _decide(self, machine: M, handler: Callable[[M, U], T], turn: U) -> T:
        return handler(machine, turn)

    def _settled(
        self, coordinator: MachineRuntime[M] | None, requests: "Sequence[Request[M, U]]", fault: Exception | None
    ) -> None:
        """Answer requests: everything they have seen and written is committed; else all of them get `fault`."""
        problem = as_coordinator_fault(fault) if isinstance(fault, Fault) else fault
        is_faultless = True
        for request in requests:
            request.fault = problem or request.fault
            if request.fault is not None:
                is_faultless = False
            if request.turn is None:
                continue
            if request.fault is None:
                self._done(request.turn)
            elif isinstance(request.fault, Fault):
                self._failed(request.turn, request.fault)
        if coordinator is not None and not is_faultless:
            self._check_runtime(coordinator)
        for request in requests:
            request.done(request.result, request.fault)

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


def _answer(answered: "asyncio.Future[tuple[Any, Exception | None]]", result: Any, fault: Exception | None) -> None:
    """The fault is part of the result: a caller that was cancelled meanwhile would leave an exception unretrieved."""
    if not answered.done():
        answered.set_result((result, fault))


def as_coordinator_fault(fault: Fault) -> Fault:
    """The fault of a partition as the coordinator errors that clients expect."""
    match fault:
        case NotLeader() | UnknownTopic():
            return NotCoordinator(str(fault))
        case StorageFailed():
            return CoordinatorUnavailable(str(fault))
        case _:
            return fault
