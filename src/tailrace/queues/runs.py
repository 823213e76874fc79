"""The offsets of a share partition that are under way: neighbours in the same state are one run.

Runs ascend, have no gaps between them, and begin at the share partition's start. A batch of records that is acquired
and accepted as a whole is a single run, so the cost does not depend on the number of records.
"""

from bisect import bisect_right
from collections.abc import Iterator

from tailrace.queues.delivery import FINISHED
from tailrace.queues.state import DeliveryState


class Run:
    """Neighbouring offsets with the same state."""

    __slots__ = ("count", "first", "last", "lock_until", "member", "not_before", "state", "writing")

    def __init__(self, first: int, last: int, state: DeliveryState, count: int = 0, not_before: int = -1) -> None:
        self.first = first
        self.last = last
        self.state = state
        self.count = count  # of deliveries
        self.not_before = not_before  # ms since the epoch: rests until then; -1: does not rest
        self.member = ""  # that holds the lock
        self.lock_until = 0.0
        self.writing = False  # its next state is decided and being written: nothing else may change it

    def __len__(self) -> int:
        return self.last - self.first + 1

    def __repr__(self) -> str:
        return f"<{self.first}-{self.last} {self.state.name} {self.count}>"

    @property
    def is_finished(self) -> bool:
        return self.state in FINISHED

    def cut(self, offset: int) -> "Run":
        """End this run before `offset`; returns the rest."""
        rest = Run(offset, self.last, self.state, self.count, self.not_before)
        rest.member, rest.lock_until = self.member, self.lock_until
        self.last = offset - 1
        return rest

    def continues(self, other: "Run") -> bool:
        """Whether this run can be merged with the one before it."""
        if self.is_finished:
            return other.is_finished
        return (
            self.state is other.state is DeliveryState.AVAILABLE
            and self.count == other.count
            and self.not_before == other.not_before
        )


class Runs:
    def __init__(self, start: int) -> None:
        self.start = start  # everything below is finished
        self.end = start  # offsets from here on are in no run: they have never been delivered
        self._runs: list[Run] = []
        self._firsts: list[int] = []

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[Run]:
        return iter(self._runs)

    def append(self, run: Run) -> None:
        assert run.first == self.end
        self._runs.append(run)
        self._firsts.append(run.first)
        self.end = run.last + 1

    def at(self, offset: int) -> Run:
        """The run that contains an offset from `start` up to `end`."""
        return self._runs[bisect_right(self._firsts, offset) - 1]

    def within(self, first: int, last: int) -> list[Run]:
        """The runs that overlap a range, as they are."""
        if first > last:
            return []
        return self._runs[bisect_right(self._firsts, first) - 1 : bisect_right(self._firsts, last)]

    def cut(self, offset: int) -> Run | None:
        """Let a run begin at `offset`; returns the one that ends there now, None if nothing was cut."""
        if not self.start < offset < self.end:
            return None
        place = bisect_right(self._firsts, offset)
        before = self._runs[place - 1]
        if before.first == offset:
            return None
        self._runs.insert(place, before.cut(offset))
        self._firsts.insert(place, offset)
        return before

    def merge(self, run: Run) -> list[Run]:
        """Merge a run with its neighbours where they are alike; returns the runs that are no more."""
        gone = []
        place = bisect_right(self._firsts, run.first) - 1
        for right in (place + 1, place):
            if 0 < right < len(self._runs) and self._runs[right].continues(self._runs[right - 1]):
                left, merged = self._runs[right - 1], self._runs[right]
                left.last, left.count = merged.last, max(left.count, merged.count)
                del self._runs[right], self._firsts[right]
                gone.append(merged)
        return gone

    def drop_finished(self) -> int:
        """Move `start` behind the finished runs at the beginning; returns the number of their offsets."""
        done = 0
        while done < len(self._runs) and self._runs[done].is_finished:
            done += 1
        before, self.start = self.start, self._runs[done].first if done < len(self._runs) else self.end
        del self._runs[:done], self._firsts[:done]
        return self.start - before
