"""Observes the share partitions in the memory of their leaders, and checks what no client can see.

- Every offset from the start to the end is in one run, runs ascend without gaps, and all counters agree with them.
- The start never goes back, and no more records are locked than the limit allows.
- A lock ends when its time is over, and when the session of its member has ended.
- A record that has rested is available again, and a fetch does not wait while something can be acquired.

The last two take effect within a turn or two of the broker's loop, so they are violated only if they last.
"""

from collections.abc import Callable, Iterator
from typing import Final

from tailrace.broker.queues.led_share import LedShare
from tailrace.broker.services.queues import ShareMember
from tailrace.model.ids import TopicPartition
from tailrace.queues.share_partition import DEAD_LETTERS_MAX
from tailrace.queues.state import DeliveryState, ShareKey
from tailrace.testing.scenarios.cluster.invariants.invariants import Invariant, InvariantViolated
from tailrace.testing.scenarios.cluster.server import Server

LASTS_SECONDS: Final = 0.25  # longer than a broker needs to act, if it is not paused
Symptom = tuple[str, ShareKey, Invariant, object]


class SharePartitionObserver:
    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._tenures: dict[int, tuple[int, LedShare]] = {}  # by the object's id: number and object, which is kept
        self._starts: dict[int, int] = {}  # by tenure
        self._symptoms: dict[Symptom, float] = {}  # since when each is observed

    @property
    def tenures(self) -> int:
        return len(self._tenures)

    def tenures_of(self, group: str, place: TopicPartition) -> int:
        key = ShareKey(group, *place)
        return sum(share.key == key for _, share in self._tenures.values())

    def tenure(self, share: LedShare) -> int:
        """The number of the tenure: one leader has loaded the share partition once."""
        return self._tenures.setdefault(id(share), (len(self._tenures), share))[0]

    def observe(self, server: Server) -> None:
        found: dict[Symptom, str] = {}
        if server.node is not None and server.runs and not server.paused:
            for share in server.node.coordinators.share_partitions.all:
                if share.is_current:
                    self._check(server, share)
                    symptoms = _symptoms(server, share, self._now())
                    found |= {(server.name, share.key, *about): what for about, what in symptoms}
        self._check_symptoms(server.name, found)

    def _check(self, server: Server, share: LedShare) -> None:
        machine, number = share.machine, self.tenure(share)
        where = f"{share.key} on {server.name}, tenure {number}"
        if machine.start < self._starts.get(number, 0):
            raise InvariantViolated(Invariant.ONE_STATE, f"{where}: the start went back to {machine.start}")
        self._starts[number] = machine.start
        end, counts = machine.start, dict.fromkeys(DeliveryState, 0)
        for run in machine.runs:
            if run.first != end or run.last < run.first:
                raise InvariantViolated(Invariant.ONE_STATE, f"{where}: {run} follows {end}: {list(machine.runs)}")
            end = run.last + 1
            counts[run.state] += len(run)
        finished = counts[DeliveryState.ACKNOWLEDGED] + counts[DeliveryState.ARCHIVED]
        counted = end, counts[DeliveryState.ACQUIRED], finished, counts[DeliveryState.ARCHIVING]
        kept = machine.end, machine.locked, machine.finished, machine.condemned
        if counted != kept:
            raise InvariantViolated(
                Invariant.ONE_STATE, f"{where}: end, locked, finished, condemned are {counted}, not {kept}"
            )
        if machine.locked > share.rules.locks_max:
            raise InvariantViolated(Invariant.LOCKS, f"{where}: {machine.locked} records are locked")

    def _check_symptoms(self, server: str, found: dict[Symptom, str]) -> None:
        """Violations if they last: those that have gone are forgotten."""
        now = self._now()
        for symptom in [one for one in self._symptoms if one[0] == server and one not in found]:
            del self._symptoms[symptom]
        for symptom, what in found.items():
            since = self._symptoms.setdefault(symptom, now)
            if now - since > LASTS_SECONDS:
                raise InvariantViolated(symptom[2], f"{symptom[1]} on {server}, since {since:.3f}: {what}")


def _symptoms(server: Server, share: LedShare, loop_time: float) -> Iterator[tuple[tuple[Invariant, object], str]]:
    node, door, machine = server.node, server.door, share.machine
    assert node is not None
    now, wall_ms = node.ports.clock.monotonic(), node.ports.clock.wall_ms()
    # a timer that began before the clock was set fires when it should have without that
    is_clock_steady = loop_time - server.machine.clock.jumped_at > share.rules.backoff_longest_ms / 1000
    for run in machine.runs:
        if run.state is DeliveryState.ACQUIRED and not run.writing:
            if run.lock_until < now:
                yield (Invariant.LOCKS, (run.first, run.count)), f"the lock of {run} ended {now - run.lock_until} s ago"
            if door is not None and not door.share_sessions.is_open(ShareMember(share.key.group, run.member)):
                yield (Invariant.LOCKS, (run.first, run.member)), f"{run} is locked by {run.member} without a session"
        if run.state is DeliveryState.AVAILABLE and 0 <= run.not_before < wall_ms and is_clock_steady:
            yield (Invariant.RESTS, (run.first, run.count)), f"{run} has rested until {wall_ms - run.not_before} ms ago"
    if share.waiting and (acquirable := _acquirable(share)) is not None:
        for one in share.waiting:
            yield (Invariant.NO_IDLE_WAIT, one), f"a fetch waits, but offset {acquirable} can be acquired"


def _acquirable(share: LedShare) -> int | None:
    """The first offset that a member could acquire now; None: there is none."""
    machine = share.machine
    if machine.locked >= share.rules.locks_max or machine.condemned >= DEAD_LETTERS_MAX:
        return None
    readable = share.readable
    ready = (one.first for one in machine.runs if one.state is DeliveryState.AVAILABLE and one.not_before < 0)
    first = min(ready, default=machine.end)
    return first if first < readable else None
