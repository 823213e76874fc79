"""The timer of all Raft replicas: one heap of deadlines, and one event-loop timer for the earliest.

Replicas whose liveness is that of a shared fetch session are not in the heap (`Replica.timed_by_pulse`): there are
many, and `Quorums.watch` checks the sessions instead. A replica that has postponed its deadline stays where it is in
the heap, and is put back when the old time comes. A replica that is not the leader may start an election at its
deadline, which `ElectionLimit` paces.
"""

import asyncio
import heapq
from typing import Final

from tailrace.broker.partitions.member import QuorumMember
from tailrace.broker.replication.election_limit import ElectionLimit
from tailrace.broker.timers import after_reading
from tailrace.ports import Clock
from tailrace.raft.events import Tick

NEVER: Final = float("inf")
WAIT_MIN_S: Final = 0.001  # so that no replica is ticked twice at one instant


class Deadlines:
    def __init__(self, clock: Clock, election_limit: ElectionLimit) -> None:
        self._clock = clock
        self._election_limit = election_limit
        self._heap: list[tuple[float, int, QuorumMember]] = []
        self._count = 0  # breaks ties: members with equal deadlines keep their order
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = NEVER

    def wake(self, member: QuorumMember) -> None:
        deadline = member.replica.deadline
        if deadline == NEVER or (member.wakes_at is not None and member.wakes_at <= deadline):
            return
        member.wakes_at = deadline
        self._count += 1
        heapq.heappush(self._heap, (deadline, self._count, member))
        if deadline < self._timer_at:
            self._set_timer(deadline)

    def _set_timer(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = at
        delay = max(WAIT_MIN_S, at - self._clock.monotonic())
        self._timer = asyncio.get_running_loop().call_later(delay, after_reading, self._due)

    def _due(self) -> None:
        self._timer, self._timer_at = None, NEVER
        now = self._clock.monotonic()
        due = []
        while self._heap and self._heap[0][0] <= now:
            due.append(heapq.heappop(self._heap))
        try:
            for at, _, member in due:
                if member.wakes_at == at:  # otherwise this entry was superseded by an earlier deadline
                    self._check(member, now)
        finally:
            if self._heap:
                self._set_timer(self._heap[0][0])

    def _check(self, member: QuorumMember, now: float) -> None:
        member.wakes_at = None
        if member.replica.deadline <= now:
            self._tick(member)
        elif not member.replica.timed_by_pulse:
            self.wake(member)

    def _tick(self, member: QuorumMember) -> None:
        if member.replica.leadership is not None:
            member.tick()
        else:
            self._election_limit.step_in_turn(member, Tick())

    def forget(self, member: QuorumMember) -> None:
        member.wakes_at = None

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._heap.clear()
