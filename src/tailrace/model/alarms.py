"""Alarms: many deadlines, most of which are postponed before they are due, as by heartbeats.

Postponing an alarm only updates a dictionary; the heap entry is corrected when it comes up. An alarm is a tuple that
identifies it for its owner; tuples of one owner must be comparable.
"""

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Generic, TypeVar

from tailrace.model.limits import ALARMS_PER_TURN_MAX

A = TypeVar("A", bound=tuple[object, ...])


class Alarms(Generic[A]):
    def __init__(self) -> None:
        self._due: dict[A, float] = {}
        self._queued: dict[A, float] = {}  # the time of the valid heap entry; never later than `_due`
        self._heap: list[tuple[float, A]] = []

    def __len__(self) -> int:
        return len(self._due)

    def set(self, alarm: A, at: float) -> None:
        """Set or move the alarm to the time `at`."""
        self._due[alarm] = at
        if alarm not in self._queued or at < self._queued[alarm]:
            self._queue(alarm, at)

    def cancel(self, alarm: A) -> None:
        self._due.pop(alarm, None)

    def _queue(self, alarm: A, at: float) -> None:
        self._queued[alarm] = at
        heappush(self._heap, (at, alarm))

    @property
    def first(self) -> float | None:
        """When to call `take` next, though no alarm may be due then. None: no alarm is set."""
        return self._heap[0][0] if self._heap else None

    def take(self, now: float) -> A | None:
        """Remove and return the first alarm that is due; None: none is.

        One at a time, because the handling of one alarm may postpone the next.
        """
        while self._heap and self._heap[0][0] <= now:
            at, alarm = heappop(self._heap)
            if self._queued.get(alarm) != at:
                continue  # an outdated entry
            del self._queued[alarm]
            due = self._due.get(alarm)
            if due is not None and due > now:
                self._queue(alarm, due)
            elif due is not None:
                del self._due[alarm]
                return alarm
        return None

    def rung(self, now: float) -> Iterator[A]:
        """The alarms that are due, as from `take`; at most `ALARMS_PER_TURN_MAX`, the rest in the next turn."""
        for _ in range(ALARMS_PER_TURN_MAX):
            alarm = self.take(now)
            if alarm is None:
                return
            yield alarm
