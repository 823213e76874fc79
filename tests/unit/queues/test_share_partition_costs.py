"""What a share partition costs in memory, however many records pass through it."""

import tracemalloc

import pytest

from tailrace.queues import share_partition
from tailrace.queues.rules import ShareRules
from tailrace.queues.share_partition import Acknowledge, Acknowledgement, Acquired, DeliveryTurn, SharePartition, Span
from tailrace.queues.state import ShareState, StateBatch

BATCHES = 1_000
BATCH_RECORDS = 3
LOCKS_MAX = 2_000  # records that are taken at once
BACKOFF_MS = 30_000  # longer than all releases take
STEP_MS = 100
RUN_MAX_BYTES = 500  # of a run and its places in the lists


def turn() -> DeliveryTurn:
    return DeliveryTurn(0.0, 0, ShareRules())


def fetch(share: SharePartition, spans: list[Span], wanted: int = 1) -> list[int]:
    """Read from the first wanted offset on, as many batches as there are, and take single records."""
    acquired: list[Acquired] = []
    first = share.wanted(0, turn())
    assert first is not None
    left = [one for one in spans if one.last >= first]
    share.acquire("ada", first, left[:50], wanted, acquired, turn(), exact=True)
    return [offset for one in acquired for offset in range(one.first, one.last + 1)]


def settle(share: SharePartition, offset: int, kind: Acknowledge) -> None:
    write = share.acknowledge("ada", [Acknowledgement(offset, offset, [kind])], turn())
    share.written(write, turn(), ok=True)


def test_one_stuck_record_does_not_make_runs_of_all_batches_behind_it() -> None:
    share = SharePartition(ShareState(state_epoch=0, start=0, complete_count=0), turn())
    spans = [Span(at, at + BATCH_RECORDS - 1) for at in range(0, BATCHES * BATCH_RECORDS, BATCH_RECORDS)]
    assert fetch(share, spans) == [0]
    for offset in range(1, BATCHES * BATCH_RECORDS):
        assert fetch(share, spans) == [offset]
        settle(share, offset, Acknowledge.ACCEPT)
    assert len(share._runs) == 2


def test_a_record_that_is_delivered_again_does_not_make_runs_of_the_markers_behind_it() -> None:
    """Each transaction ends with a control batch, which is read again with the record before it."""
    share = SharePartition(ShareState(state_epoch=0, start=0, complete_count=0), turn())
    spans = [
        one for at in range(0, 40, 4) for one in (Span(at, at + 1), Span(at + 2, at + 2, deliverable=False))
    ]  # with a hole after each marker
    assert fetch(share, spans) == [0]
    while offsets := fetch(share, spans):
        settle(share, offsets[0], Acknowledge.ACCEPT)
    settle(share, 0, Acknowledge.RELEASE)
    assert fetch(share, spans, wanted=500) == [0]
    assert len(share._runs) == 2


class BackingOff:
    """A share partition whose records are released one by one, each at its own time, and what is stored of it."""

    def __init__(self, records: int, per_ms: int) -> None:
        self.rules = ShareRules(delivery_limit=0, backoff_ms=BACKOFF_MS, backoff_max_ms=BACKOFF_MS)
        self.spans = [Span(at, at + LOCKS_MAX - 1) for at in range(0, records, LOCKS_MAX)]
        self.due_ms: dict[int, int] = {}  # by offset
        self.stored: list[StateBatch] = []
        self.now_ms = 0
        self.share = self.loaded([])
        for span in self.spans:
            if self.share.wanted(span.first, self.turn()) is None:
                break
            for count, offset in enumerate(self.take(span), 1):
                self.release(offset)
                self.now_ms += count % per_ms == 0

    def turn(self) -> DeliveryTurn:
        return DeliveryTurn(0.0, self.now_ms, self.rules)

    def loaded(self, stored: list[StateBatch]) -> SharePartition:
        return SharePartition(ShareState(state_epoch=0, start=0, complete_count=0, batches=tuple(stored)), self.turn())

    def take(self, span: Span) -> list[int]:
        acquired: list[Acquired] = []
        self.share.acquire("ada", span.first, [span], LOCKS_MAX, acquired, self.turn(), exact=True)
        return [offset for one in acquired for offset in range(one.first, one.last + 1)]

    def release(self, offset: int) -> None:
        write = self.share.acknowledge("ada", [Acknowledgement(offset, offset, [Acknowledge.RELEASE])], self.turn())
        self.stored += write.batches
        self.due_ms[offset] = write.batches[0].not_before
        self.share.written(write, self.turn(), ok=True)

    def deliver_in_time(self) -> None:
        """Let the time pass in steps: a record comes in the first step at or after its time, and in none before."""
        left = dict(self.due_ms)
        while left:
            self.now_ms += STEP_MS
            self.share.tick(self.turn())
            while (first := self.share.wanted(0, self.turn())) is not None and first < self.share.end:
                for offset in self.take(Span(first, self.spans[first // LOCKS_MAX].last)):
                    assert left.pop(offset) <= self.now_ms, "a record is early"
                    accepted = [Acknowledgement(offset, offset, [Acknowledge.ACCEPT])]
                    self.share.written(self.share.acknowledge("ada", accepted, self.turn()), self.turn(), ok=True)
            assert min(left.values(), default=self.now_ms + 1) > self.now_ms, "a record is late"


def test_100_000_records_that_back_off_cost_a_run_for_each_time() -> None:
    """Ten are released in each millisecond: neighbours that come back at the same time are one run, after a restart,
    too."""
    backing = BackingOff(100_000, per_ms=10)
    assert len(backing.share._runs) == 10_000
    tracemalloc.start()
    try:
        share = backing.loaded(backing.stored)
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(share._runs) == 10_000
    assert used / len(share._runs) < RUN_MAX_BYTES


def test_records_that_back_off_come_in_time_also_after_a_restart() -> None:
    backing = BackingOff(20_000, per_ms=1)
    backing.share = backing.loaded(backing.stored)
    assert len(backing.share._runs) == 20_000
    backing.deliver_in_time()
    assert backing.share.start == 20_000


def test_at_the_limit_of_runs_no_new_records_are_taken_and_none_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each record has its own time, and so a run of its own: the worst there is."""
    monkeypatch.setattr(share_partition, "RUNS_MAX", 5_000)
    backing = BackingOff(20_000, per_ms=1)
    assert backing.share.is_full
    assert len(backing.share._runs) == len(backing.due_ms) == 6_000, "the last take was before the limit"
    assert backing.share.wanted(0, backing.turn()) is None
    backing.deliver_in_time()
    assert backing.share.wanted(0, backing.turn()) == backing.share.start == len(backing.due_ms)
