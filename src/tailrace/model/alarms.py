"""What is due when: many deadlines, most of which are put off before they come, as heartbeats do.

Putting one off costs a dictionary entry; the heap finds out when it gets there. An alarm is whatever its owner tells
apart: values that can be compared.
"""

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Generic, TypeVar

from tailrace.model.limits import ALARMS_PER_TURN_MAX

A = TypeVar("A", bound=tuple[object, ...])


class Alarms(Generic[A]):
    def __init__(self) -> None:
        self._due: dict[A, float] = {}
        self._queued: dict[A, float] = {}  # the heap's entry that counts; never later than due
        self._heap: list[tuple[float, A]] = []

    def __len__(self) -> int:
        return len(self._due)

    def set(self, alarm: A, at: float) -> None:
        """Let it ring at `at`, and not when it was to ring before."""
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
        """When to look next; perhaps there is nothing then. None: no alarm is set."""
        return self._heap[0][0] if self._heap else None

    def take(self, now: float) -> A | None:
        """The first that is due now, which is not set any more; None: nothing is due.

        One at a time: what one of them brings about may put off the next."""
        while self._heap and self._heap[0][0] <= now:
            at, alarm = heappop(self._heap)
            if self._queued.get(alarm) != at:
                continue  # another entry counts
            del self._queued[alarm]
            due = self._due.get(alarm)
            if due is not None and due > now:
                self._queue(alarm, due)
            elif due is not None:
                del self._due[alarm]
                return alarm
        return None

    def rung(self, now: float) -> Iterator[A]:
        """Those that are due now, as `take` has them; no more than a turn can take: the rest rings in the next."""
        for _ in range(ALARMS_PER_TURN_MAX):
            alarm = self.take(now)
            if alarm is None:
                return
            yield alarm
