"""The share partition beside a naive model, which keeps the state of each offset, under random events."""

from collections import Counter
from typing import Any, NamedTuple

import hypothesis.strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tailrace.queues.delivery import FINISHED
from tailrace.queues.rules import ShareRules
from tailrace.queues.share_partition import (
    Acknowledge,
    Acknowledgement,
    Acquired,
    DeliveryTurn,
    SharePartition,
    Span,
    Write,
)
from tailrace.queues.state import DeliveryState, ShareState, StateBatch

MEMBERS = ("ada", "bob", "eve")
LOCK_MS = 1_000


class Stored(NamedTuple):
    state: DeliveryState
    deliveries: int
    not_before: int


class SharePartitionModel(RuleBasedStateMachine):
    @initialize(
        sizes=st.lists(st.tuples(st.integers(1, 6), st.booleans(), st.integers(0, 2)), min_size=3, max_size=12),
        limit=st.sampled_from([0, 2, 3, 5]),
        backoff_ms=st.sampled_from([0, 700]),
        dead_letters=st.booleans(),
        locks_max=st.sampled_from([3, 10, 100]),
    )
    def begin(
        self, sizes: list[tuple[int, bool, int]], limit: int, backoff_ms: int, dead_letters: bool, locks_max: int
    ) -> None:
        self.share_rules = ShareRules(
            lock_ms=LOCK_MS,
            delivery_limit=limit,
            locks_max=locks_max,
            backoff_ms=backoff_ms,
            backoff_max_ms=4 * backoff_ms,
            dead_letters=dead_letters,
        )
        self.now_ms = 0
        self.spans: list[Span] = []
        at = 0
        for size, deliverable, hole in sizes:
            at += hole
            self.spans.append(Span(at, at + size - 1, deliverable))
            at += size
        self.end = at
        self.log_start = 0
        self.durable: dict[int, Stored] = {}
        self.durable_start = 0
        self.accepted: set[int] = set()  # written and answered
        self.held: dict[int, str] = {}
        self.counts: Counter[int] = Counter()  # deliveries since the beginning
        self.wakes: dict[int, int] = {}  # resting offsets
        self.writes: list[tuple[str, Write]] = []
        self.condemned: dict[int, None] = {}
        self.dead: set[int] = set()
        self.load()

    def turn(self) -> DeliveryTurn:
        return DeliveryTurn(self.now_ms / 1000, self.now_ms, self.share_rules)

    def load(self) -> None:
        batches = [
            StateBatch(offset, offset, one.state, one.deliveries, one.not_before)
            for offset, one in sorted(self.durable.items())
            if offset >= self.durable_start
        ]
        turn = self.turn()
        self.share = SharePartition(
            ShareState(state_epoch=0, start=self.durable_start, complete_count=0, batches=tuple(batches)), turn
        )
        self.held, self.writes, self.condemned = {}, [], {}
        self.wakes = {one.first: one.not_before for one in batches if one.not_before >= 0}
        self.done(turn)

    def done(self, turn: DeliveryTurn) -> None:
        """Carry out a turn's effects."""
        self.store(turn.changed, None)
        for letter in turn.dead_letters:
            assert self.share_rules.dead_letters
            if self.share_rules.delivery_limit and not letter.rejected:
                assert letter.deliveries >= self.share_rules.delivery_limit
            self.condemned.update(dict.fromkeys(range(letter.first, letter.last + 1)))
        for batch in turn.changed:
            for offset in range(batch.first, batch.last + 1):
                self.held.pop(offset, None)
                if batch.state is DeliveryState.AVAILABLE and batch.not_before >= 0:
                    self.wakes[offset] = batch.not_before

    def store(self, batches: list[StateBatch], write: Write | None) -> None:
        start, finished = self.share.progress(write)
        assert start >= self.durable_start
        done = {offset for run in self.share._runs if run.is_finished for offset in range(run.first, run.last + 1)}
        for batch in batches if write else []:
            if batch.state in FINISHED:
                done.update(range(batch.first, batch.last + 1))
        assert finished == len([offset for offset in done if offset >= start])
        assert start not in done
        self.durable_start = start
        for batch in batches:
            for offset in range(batch.first, batch.last + 1):
                known = self.durable.get(offset)
                if known is None or (batch.count, batch.state) >= (known.deliveries, known.state):
                    self.durable[offset] = Stored(batch.state, batch.count, batch.not_before)

    @rule(member=st.sampled_from(MEMBERS), wanted=st.integers(1, 12), exact=st.booleans(), read=st.integers(1, 4))
    def acquire(self, member: str, wanted: int, exact: bool, read: int) -> None:
        turn = self.turn()
        self.share.tick(turn)
        self.share.trim(self.log_start, turn)
        self.done(turn)
        turn = self.turn()
        offset = self.share.wanted(0, turn)
        if offset is None or offset >= self.end:
            return
        spans = [one for one in self.spans if one.last >= offset][:read]
        acquired: list[Acquired] = []
        self.share.acquire(member, offset, spans, wanted, acquired, turn, exact=exact)
        assert not turn.changed
        offsets = [one for batch in acquired for one in range(batch.first, batch.last + 1)]
        assert offsets == sorted(set(offsets))
        deliverable = {one for span in spans if span.deliverable for one in range(span.first, span.last + 1)}
        assert deliverable.issuperset(offsets)
        if exact:
            assert len(offsets) <= wanted
        for batch in acquired:
            for one in range(batch.first, batch.last + 1):
                assert one not in self.held, "two members hold a record"
                assert one not in self.accepted, "an accepted record is delivered again"
                assert self.wakes.get(one, -1) <= self.now_ms, "delivered before its time"
                self.wakes.pop(one, None)
                self.counts[one] += 1
                assert batch.deliveries <= self.counts[one]
                if self.share_rules.delivery_limit:
                    assert batch.deliveries <= self.share_rules.delivery_limit
                    if batch.deliveries == self.share_rules.delivery_limit:
                        assert len(offsets) == 1, "the last delivery has company"
                self.held[one] = member

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def acknowledge(self, data: Any) -> None:
        offset = data.draw(st.sampled_from(sorted(self.held)))
        member = self.held[offset]
        last = offset
        while last + 1 in self.held and self.held[last + 1] == member and data.draw(st.booleans()):
            last += 1
        types = data.draw(
            st.lists(st.sampled_from(list(Acknowledge)), min_size=last - offset + 1, max_size=last - offset + 1)
        )
        if any(offset <= batch.last and last >= batch.first for _, write in self.writes for batch in write.batches):
            return
        turn = self.turn()
        self.share.tick(turn)
        self.done(turn)
        if any(one not in self.held for one in range(offset, last + 1)):
            return
        turn = self.turn()
        write = self.share.acknowledge(member, [Acknowledgement(offset, last, types)], turn)
        assert not turn.changed
        self.writes.append((member, write))

    @precondition(lambda self: self.writes)
    @rule(ok=st.booleans(), first=st.booleans())
    def written(self, ok: bool, first: bool) -> None:
        _, write = self.writes.pop(0 if first else -1)
        if ok:
            self.store(write.batches, write)
        turn = self.turn()
        self.share.written(write, turn, ok=ok)
        if ok:
            for batch in write.batches:
                for offset in range(batch.first, batch.last + 1):
                    self.held.pop(offset, None)
                    if batch.state is DeliveryState.ACKNOWLEDGED:
                        self.accepted.add(offset)
                    if batch.state is DeliveryState.AVAILABLE and batch.not_before >= 0:
                        self.wakes[offset] = batch.not_before
        self.done(turn)

    @rule(member=st.sampled_from(MEMBERS))
    def leave(self, member: str) -> None:
        turn = self.turn()
        self.share.left(member, turn)
        self.done(turn)

    @rule(ms=st.sampled_from([100, 500, 1_100, 3_000]))
    def time_passes(self, ms: int) -> None:
        self.now_ms += ms
        turn = self.turn()
        self.share.tick(turn)
        self.done(turn)

    @precondition(lambda self: self.condemned)
    @rule(data=st.data())
    def dead_letter(self, data: Any) -> None:
        offset = data.draw(st.sampled_from(sorted(self.condemned)))
        del self.condemned[offset]
        self.dead.add(offset)
        turn = self.turn()
        self.share.dead_lettered(offset, offset, turn)
        self.done(turn)

    @rule(by=st.integers(0, 3))
    def records_are_deleted(self, by: int) -> None:
        self.log_start = min(self.log_start + by, self.end)
        turn = self.turn()
        self.share.trim(self.log_start, turn)
        self.done(turn)

    @rule()
    def leader_changes(self) -> None:
        self.load()

    @invariant()
    def counts_add_up(self) -> None:
        runs = list(self.share._runs)
        at = self.share.start
        for run in runs:
            assert run.first == at <= run.last
            at = run.last + 1
        assert at == self.share.end
        assert not runs or not runs[0].is_finished
        assert self.share.locked == len(self.held) <= self.share_rules.locks_max
        assert self.share.finished == sum(len(run) for run in runs if run.is_finished)
        assert self.share.condemned == sum(len(run) for run in runs if run.state is DeliveryState.ARCHIVING)
        for run in runs:
            for offset in range(run.first, run.last + 1):
                assert (self.held.get(offset) == run.member) if run.state is DeliveryState.ACQUIRED else True
        first_lock_end = self.share.alarm[0]
        for run in runs:
            if run.state is DeliveryState.ACQUIRED and not run.writing:
                assert first_lock_end is not None
                assert first_lock_end <= run.lock_until

    @invariant()
    def nothing_is_forgotten(self) -> None:
        """What is neither finished nor held nor condemned is ready, or rests until a time that has an alarm."""
        ready = set(self.share._ready)
        resting = {first for _, first in self.share._resting}
        for run in self.share._runs:
            if run.state is DeliveryState.AVAILABLE:
                assert run.first in (resting if run.not_before >= 0 else ready)
        assert sorted(ready) == self.share._ready
        if self.share_rules.dead_letters:
            for offset, one in self.durable.items():
                if one.state is DeliveryState.ARCHIVED and offset in self.condemned:
                    raise AssertionError(f"{offset} is archived before its dead letter is written")
        assert FINISHED.isdisjoint({run.state for run in self.share._runs if run.member})


TestSharePartition = SharePartitionModel.TestCase
