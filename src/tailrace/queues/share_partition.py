"""One topic partition as one share group reads it, on the partition's leader: a state machine without I/O.

Each event is a method call with a `DeliveryTurn`, which has the time and collects the effects. The driver reads
batches from the first offset that is wanted (`wanted`) and offers them (`acquire`). Acknowledgements are decided at
once and take effect when they are written: the driver writes the `Write` to the share coordinator and reports back
(`written`). What is released because a lock ended or a member left takes effect at once, and is written afterwards
(`DeliveryTurn.changed`).

Offsets that nothing is stored about are available. So a lost write can only repeat a delivery, never lose a record.
The number of deliveries is stored with the next change of state: a new leader may have missed one.

Only acquired records count as locks: records that are stuck or rest do not stop those behind them. The number of runs
is bounded instead.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from enum import IntEnum
from heapq import heapify, heappop, heappush
from typing import Final, NamedTuple

from tailrace.model.faults import InvalidRecordState, InvalidRequest
from tailrace.model.transitions import Transition
from tailrace.queues.delivery import TRANSITIONS, Cause, Move
from tailrace.queues.rules import ShareRules
from tailrace.queues.runs import Run, Runs
from tailrace.queues.state import DeliveryState, ShareState, StateBatch

RUNS_MAX: Final = 50_000  # of a share partition: at this number no new offsets are acquired
DEAD_LETTERS_MAX: Final = 10_000  # that wait to be written: at this number nothing is acquired


class Acknowledge(IntEnum):
    """What a member says about a record; Kafka's numbers."""

    GAP = 0  # there is no record at this offset
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4  # the lock


class Acknowledgement(NamedTuple):
    """Of neighbouring offsets: one type for all of them, or one for each."""

    first: int
    last: int
    types: Sequence[int]


class Span(NamedTuple):
    """The offsets of a batch in the log."""

    first: int
    last: int
    deliverable: bool = True  # False: a control batch, or one of an aborted transaction


class Acquired(NamedTuple):
    first: int
    last: int
    deliveries: int  # this one included


class DeadLetter(NamedTuple):
    """Records to be copied to the dead letter topic."""

    first: int
    last: int
    deliveries: int
    rejected: bool  # False: the delivery limit was exceeded


class Write:
    """What to write before it takes effect; `written` reports the outcome."""

    def __init__(self, runs: list[Run], batches: list[StateBatch], causes: list[Cause]) -> None:
        self.runs = runs
        self.batches = batches  # the state that each run will have
        self.causes = causes


class DeliveryTurn:
    """One event: when it happens, and what follows from it."""

    def __init__(self, now: float, wall_ms: int, rules: ShareRules) -> None:
        self.now = now  # by the monotonic clock
        self.wall_ms = wall_ms
        self.rules = rules
        self.changed: list[StateBatch] = []  # took effect and is yet to be written
        self.dead_letters: list[DeadLetter] = []
        self.moves: list[Move] = []


class SharePartition:
    def __init__(self, state: ShareState, turn: DeliveryTurn) -> None:
        self._runs = Runs(state.start)
        self.locked = 0  # offsets that are acquired
        self.finished = 0  # offsets after the start that are finished
        self.condemned = 0  # offsets that wait for their dead letters to be written
        self._ready: list[int] = []  # first offsets of the available runs that do not rest
        self._resting: list[tuple[int, int]] = []  # heap: until when (ms), the first offset of the run
        self._first_lock_end: float | None = None  # no lock ends before
        for batch in state.batches:
            self._load(batch, turn)
        heapify(self._resting)
        self._drop_finished()

    def _load(self, batch: StateBatch, turn: DeliveryTurn) -> None:
        runs = self._runs
        if batch.last < runs.end:
            return
        if batch.first > runs.end:
            self._make_available(self._append(runs.end, batch.first - 1))
        run = self._append(max(batch.first, runs.end), batch.last)
        run.state, run.count, run.not_before = batch.state, batch.count, batch.not_before
        if run.not_before >= 0:  # by the clock of another broker: not longer than by this one's
            run.not_before = min(run.not_before, turn.wall_ms + turn.rules.backoff(run.count))
        if run.state is DeliveryState.AVAILABLE:
            self._make_available(run)
        elif run.state is DeliveryState.ARCHIVING:
            self.condemned += len(run)
            turn.dead_letters.append(_dead_letter(run, rejected=not _is_exceeded(run, turn.rules)))
        elif run.is_finished:
            self._finish(run)

    def _append(self, first: int, last: int) -> Run:
        run = Run(first, last, DeliveryState.AVAILABLE)
        self._runs.append(run)
        return run

    # What there is

    @property
    def start(self) -> int:
        """Everything below is finished."""
        return self._runs.start

    @property
    def end(self) -> int:
        """Nothing from here on has been delivered."""
        return self._runs.end

    @property
    def runs(self) -> Iterable[Run]:
        return self._runs

    @property
    def alarm(self) -> tuple[float | None, int | None]:
        """When to call `tick` next, though nothing may be due then: by the monotonic clock, and in ms of the wall."""
        return self._first_lock_end, self._resting[0][0] if self._resting else None

    def wanted(self, offset: int, turn: DeliveryTurn) -> int | None:
        """The first offset from `offset` on that could be delivered if the log has it; None: nothing now."""
        if self.locked >= turn.rules.locks_max or self.condemned >= DEAD_LETTERS_MAX:
            return None
        place = bisect_left(self._ready, offset)
        if place < len(self._ready):
            return self._ready[place]
        return None if self.is_full else max(offset, self._runs.end)

    @property
    def is_full(self) -> bool:
        """Too many runs: nothing that was never delivered is acquired."""
        return len(self._runs) >= RUNS_MAX

    # Delivering

    def acquire(
        self,
        member: str,
        offset: int,
        spans: Iterable[Span],
        wanted: int,
        acquired: list[Acquired],
        turn: DeliveryTurn,
        *,
        exact: bool,
    ) -> bool:
        """Lock records of these batches, which follow `offset` in the log without others between them, and add them to
        those that the member has `acquired` with the same request. False: this must be all.

        `exact`: not more than `wanted` records. Otherwise the last batch is acquired to its end."""
        for span in spans:
            self._skip(offset, span.first - 1, turn)
            offset = span.last + 1
            if not span.deliverable:
                self._skip(span.first, span.last, turn)
                continue
            limit = wanted if exact else offset - span.first
            taken = self._acquire_span(member, span, min(limit, turn.rules.locks_max - self.locked), acquired, turn)
            if taken is None:
                return False
            wanted -= taken
            if wanted <= 0:
                return False
        return True

    def _acquire_span(
        self, member: str, span: Span, room: int, acquired: list[Acquired], turn: DeliveryTurn
    ) -> int | None:
        """The number of records that were locked; None: those that follow must wait for the next request."""
        if span.last >= self._runs.end and not self.is_full and room > 0:
            self._make_available(self._append(self._runs.end, span.last))
        taken = 0
        self._cut_available(span.first)
        for first in self._ready[bisect_left(self._ready, span.first) : bisect_left(self._ready, span.last + 1)]:
            run = self._runs.at(first)
            company = turn.rules.isolated(run.count, room)
            if company is not None and acquired:
                return None
            last = min(run.last, span.last, first + min(room - taken, company or room) - 1)
            if last < first:
                return None
            self._lock(member, first, last, acquired, turn)
            taken += last - first + 1
            if company is not None:
                return None
        return taken

    def _lock(self, member: str, first: int, last: int, acquired: list[Acquired], turn: DeliveryTurn) -> None:
        (run,) = self._exactly(first, last)
        self._not_ready(run)
        self._move(run, Cause.ACQUIRED, turn)
        run.count += 1
        run.member = member
        self.locked += len(run)
        self._renew(run, turn)
        if acquired and acquired[-1].last + 1 == first and acquired[-1].deliveries == run.count:
            acquired[-1] = acquired[-1]._replace(last=last)
        else:
            acquired.append(Acquired(first, last, run.count))

    def _renew(self, run: Run, turn: DeliveryTurn) -> None:
        run.lock_until = turn.now + turn.rules.lock_ms / 1000
        if self._first_lock_end is None or run.lock_until < self._first_lock_end:
            self._first_lock_end = run.lock_until

    def _skip(self, first: int, last: int, turn: DeliveryTurn) -> None:
        """There is nothing to deliver at these offsets."""
        if last >= self._runs.end:
            self._make_available(self._append(self._runs.end, last))
        if first > last or last < self._runs.start:
            return
        first = max(first, self._runs.start)
        self._cut_available(first)
        self._cut_available(last + 1)
        for run in self._runs.within(first, last):
            if run.state is DeliveryState.AVAILABLE:
                self._not_ready(run)
                self._move(run, Cause.SKIPPED, turn)
                self._finish(run)
        self._drop_finished()

    def trim(self, log_start: int, turn: DeliveryTurn) -> None:
        """The log now begins here. Records that are acquired may still be acknowledged."""
        if log_start > self._runs.start:
            self._skip(self._runs.start, log_start - 1, turn)

    # Acknowledging

    def acknowledge(self, member: str, acknowledged: Sequence[Acknowledgement], turn: DeliveryTurn) -> Write:
        """All of them are valid, or a fault says why not and nothing changes. They take effect when written."""
        parts = [part for one in acknowledged for part in self._parts(one)]
        parts.sort()
        end = -1
        for first, last, _ in parts:
            if first <= end:
                raise InvalidRequest(f"offset {first} is acknowledged twice in one request")
            end = last
            for run in self._runs.within(first, last):
                if run.state is not DeliveryState.ACQUIRED or run.writing or run.member != member:
                    raise InvalidRecordState(f"offset {max(first, run.first)} is not acquired by member {member}")
        write = Write([], [], [])
        for first, last, kind in parts:
            for run in self._exactly(first, last):
                self._decide(run, kind, write, turn)
        return write

    def _parts(self, one: Acknowledgement) -> list[tuple[int, int, Acknowledge]]:
        """The neighbours of the same type; what lies below the start is finished and ignored."""
        first, last, types = one
        if not 0 <= first <= last or len(types) not in (1, last - first + 1):
            raise InvalidRequest(f"{len(types)} acknowledgement types for offsets {first} to {last}")
        if last >= self._runs.end:
            raise InvalidRequest(f"offset {last} was never delivered")
        start = self._runs.start
        if len(set(types)) == 1:
            return [(max(first, start), last, _kind(types[0]))] if last >= start else []
        found: list[tuple[int, int, Acknowledge]] = []
        for offset, number in enumerate(types, first):
            kind = _kind(number)
            if offset < start:
                continue
            if found and found[-1][2] is kind:
                found[-1] = (found[-1][0], offset, kind)
            else:
                found.append((offset, offset, kind))
        return found

    def _decide(self, run: Run, kind: Acknowledge, write: Write, turn: DeliveryTurn) -> None:
        match kind:
            case Acknowledge.RENEW:
                self._renew(run, turn)
                return
            case Acknowledge.ACCEPT:
                cause, not_before = Cause.ACCEPTED, -1
            case Acknowledge.GAP:
                cause, not_before = Cause.SKIPPED, -1
            case Acknowledge.REJECT:
                cause, not_before = Cause.REJECTED if turn.rules.dead_letters else Cause.DISCARDED, -1
            case Acknowledge.RELEASE:
                cause, not_before = _released(run, turn, rests=True)
        run.writing = True
        write.runs.append(run)
        write.causes.append(cause)
        state = TRANSITIONS[run.state, cause]
        write.batches.append(StateBatch(run.first, run.last, state, run.count, not_before))

    def progress(self, write: Write | None = None) -> tuple[int, int]:
        """The start and the number of finished offsets after it, as they will be when `write` is.

        What other writes are about to finish does not count: they may fail."""
        start, finished = self._runs.start, self.finished
        writing: dict[int, StateBatch] = {}
        if write is not None:
            writing = {
                one.first: one
                for one in write.batches
                if one.state in (DeliveryState.ACKNOWLEDGED, DeliveryState.ARCHIVED)
            }
            finished += sum(one.last - one.first + 1 for one in writing.values())
        for run in self._runs:
            if not run.is_finished and run.first not in writing:
                break
            start = run.last + 1
            finished -= len(run)
        return start, finished

    def written(self, write: Write, turn: DeliveryTurn, *, ok: bool) -> None:
        """The outcome of a write. If it failed, its records are acquired as before."""
        for run, batch, cause in zip(write.runs, write.batches, write.causes, strict=True):
            run.writing = False
            if ok:
                self._leave_lock(run, cause, batch.not_before, turn)
            elif run.lock_until <= turn.now:
                self._give_back(run, turn, rests=True)
        self._drop_finished()

    def left(self, member: str, turn: DeliveryTurn) -> None:
        """A member's session ended: what it holds is available at once."""
        for run in [one for one in self._runs if one.state is DeliveryState.ACQUIRED and one.member == member]:
            if run.writing:
                run.lock_until = turn.now  # if the write fails
            else:
                self._give_back(run, turn, rests=False)
        self._drop_finished()

    def not_delivered(self, member: str, acquired: Iterable[Acquired], turn: DeliveryTurn) -> None:
        """Records acquired for a member cannot be sent to it: release them, and no others that it holds."""
        for one in acquired:
            for run in self._exactly(max(one.first, self._runs.start), min(one.last, self._runs.end - 1)):
                if run.state is DeliveryState.ACQUIRED and run.member == member and not run.writing:
                    self._give_back(run, turn, rests=False)
        self._drop_finished()

    def dead_lettered(self, first: int, last: int, turn: DeliveryTurn) -> None:
        """The copies of these records are in the dead letter topic."""
        for run in self._exactly(max(first, self._runs.start), min(last, self._runs.end - 1)):
            if run.state is DeliveryState.ARCHIVING:
                self.condemned -= len(run)
                self._move(run, Cause.DEAD_LETTERED, turn)
                turn.changed.append(StateBatch(run.first, run.last, run.state, run.count))
                self._finish(run)
        self._drop_finished()

    # Time

    def tick(self, turn: DeliveryTurn) -> None:
        """End locks whose time is over, and wake records that have rested."""
        if self._first_lock_end is not None and self._first_lock_end <= turn.now:
            self._end_locks(turn)
        while self._resting and _has_rested(self._resting[0][0], turn):
            _, first = heappop(self._resting)
            run = self._runs.at(first) if self._runs.start <= first < self._runs.end else None
            if run is not None and run.state is DeliveryState.AVAILABLE and _has_rested(run.not_before, turn):
                run.not_before = -1
                self._make_available(run)

    def _end_locks(self, turn: DeliveryTurn) -> None:
        held = [one for one in self._runs if one.state is DeliveryState.ACQUIRED]
        for run in held:
            if run.lock_until <= turn.now and not run.writing:
                self._give_back(run, turn, rests=True)
        self._drop_finished()
        self._first_lock_end = min((one.lock_until for one in held if one.lock_until > turn.now), default=None)

    # Transitions

    def _give_back(self, run: Run, turn: DeliveryTurn, *, rests: bool) -> None:
        cause, not_before = _released(run, turn, rests=rests)
        turn.changed.append(StateBatch(run.first, run.last, TRANSITIONS[run.state, cause], run.count, not_before))
        self._leave_lock(run, cause, not_before, turn)

    def _leave_lock(self, run: Run, cause: Cause, not_before: int, turn: DeliveryTurn) -> None:
        self.locked -= len(run)
        run.member = ""
        run.not_before = not_before
        self._move(run, cause, turn)
        if run.is_finished:
            self._finish(run)
        elif run.state is DeliveryState.ARCHIVING:
            self.condemned += len(run)
            turn.dead_letters.append(_dead_letter(run, rejected=cause is Cause.REJECTED))
        else:
            self._make_available(run)

    def _move(self, run: Run, cause: Cause, turn: DeliveryTurn) -> None:
        to = TRANSITIONS[run.state, cause]
        turn.moves.append(Transition(run.state, cause, to))  # `Move(…)` takes three times as long
        run.state = to

    def _make_available(self, run: Run) -> None:
        merged = self._runs.merge(run)
        for gone in merged:
            self._not_ready(gone)
        if run.not_before >= 0:
            if run not in merged:  # else the run before it has an entry
                heappush(self._resting, (run.not_before, run.first))
            return
        run = self._runs.at(run.first)
        if not self._is_ready(run):
            insort(self._ready, run.first)

    def _exactly(self, first: int, last: int) -> list[Run]:
        """The runs of a range, cut at its ends."""
        self._cut(first)
        self._cut(last + 1)
        return self._runs.within(first, last)

    def _cut(self, offset: int) -> None:
        before = self._runs.cut(offset)
        if before is not None and before.not_before >= 0:
            heappush(self._resting, (before.not_before, offset))
        elif before is not None and self._is_ready(before):
            insort(self._ready, offset)

    def _cut_available(self, offset: int) -> None:
        """Cut at the end of a batch. Other runs stay whole: finished ones would become as many as there are batches."""
        if self._runs.start < offset < self._runs.end and self._runs.at(offset).state is DeliveryState.AVAILABLE:
            self._cut(offset)

    def _is_ready(self, run: Run) -> bool:
        place = bisect_left(self._ready, run.first)
        return place < len(self._ready) and self._ready[place] == run.first

    def _not_ready(self, run: Run) -> None:
        if self._is_ready(run):
            del self._ready[bisect_left(self._ready, run.first)]

    def _finish(self, run: Run) -> None:
        self.finished += len(run)
        self._runs.merge(run)

    def _drop_finished(self) -> None:
        self.finished -= self._runs.drop_finished()


def _released(run: Run, turn: DeliveryTurn, *, rests: bool) -> tuple[Cause, int]:
    """Why a record leaves its lock that was not accepted, and until when its backoff lasts (-1: none)."""
    rules = turn.rules
    if _is_exceeded(run, rules):
        return (Cause.EXCEEDED if rules.dead_letters else Cause.DISCARDED), -1
    backoff_ms = rules.backoff(run.count) if rests else 0
    return Cause.RELEASED, turn.wall_ms + backoff_ms if backoff_ms else -1


def _is_exceeded(run: Run, rules: ShareRules) -> bool:
    return 0 < rules.delivery_limit <= run.count


def _has_rested(not_before: int, turn: DeliveryTurn) -> bool:
    """Or it would rest longer than any record does: the clock was set back, or the settings have changed."""
    return 0 <= not_before <= turn.wall_ms or not_before > turn.wall_ms + turn.rules.backoff_longest_ms


def _dead_letter(run: Run, *, rejected: bool) -> DeadLetter:
    return DeadLetter(run.first, run.last, run.count, rejected)


def _kind(number: int) -> Acknowledge:
    try:
        return Acknowledge(number)
    except ValueError:
        raise InvalidRequest(f"unknown acknowledgement type {number}") from None
