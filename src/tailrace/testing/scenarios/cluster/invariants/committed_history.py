"""The committed history of each partition: every batch that was ever below the high watermark of any replica.

A batch is added when it is first observed on any replica. Every later observation must agree with it, so the history
only grows. Two replicas that disagree, a replica that comes back with other bytes, or a new leader that lacks a
committed batch end the run. The sequences of each idempotent producer follow on each other without gaps or repeats.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Final

from tailrace.model.ids import TopicPartition
from tailrace.testing.scenarios.cluster.invariants.invariants import Invariant, InvariantViolated
from tailrace.testing.scenarios.cluster.invariants.log_entries import Entry
from tailrace.testing.scenarios.cluster.invariants.observation import ReplicaObservation

SEQUENCE_MASK: Final = 0x7FFFFFFF


class CommittedHistory:
    def __init__(self, key: TopicPartition) -> None:
        self.key = key
        self.end = 0
        self._entries: list[Entry] = []
        self._bases: list[int] = []
        self._producer_epochs: dict[int, int] = {}  # the newest epoch, by producer id
        self._next_sequences: dict[tuple[int, int], int] = {}  # by producer id and epoch

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, seen: ReplicaObservation, entries: Iterable[Entry]) -> None:
        """Add or compare batches below a replica's high watermark, in order; those compared before may be left out."""
        for entry in entries:
            if entry.base >= self.end:
                self._append(seen, entry)
            else:
                self._compare(seen, entry)

    def at(self, offset: int) -> Entry | None:
        """The batch that holds an offset; None if it was not observed, or is not committed yet."""
        found = bisect_right(self._bases, offset) - 1
        entry = self._entries[found] if found >= 0 else None
        return entry if entry is not None and offset <= entry.last else None

    def check_leader(self, seen: ReplicaObservation) -> None:
        """A new leader has every entry that was committed before its term (Raft §5.4, Leader Completeness)."""
        if seen.end < self.end:
            raise InvariantViolated(Invariant.PREFIX, f"committed up to {self.end}, a new leader has less: {seen}")

    def _check_producer_epoch(self, seen: ReplicaObservation, entry: Entry) -> None:
        newest = self._producer_epochs.get(entry.producer_id, -1)
        if entry.producer_id >= 0 and entry.producer_epoch < newest:
            raise InvariantViolated(
                Invariant.FENCED,
                f"({entry}) with producer epoch {entry.producer_epoch} follows producer epoch {newest}: {seen}",
            )
        self._producer_epochs[entry.producer_id] = entry.producer_epoch

    def _append(self, seen: ReplicaObservation, entry: Entry) -> None:
        if entry.base > self.end and seen.start < entry.base and self._entries:
            raise InvariantViolated(Invariant.PREFIX, f"the log has a gap from {self.end} to {entry.base}: {seen}")
        if self._entries and entry.epoch < self._entries[-1].epoch:
            raise InvariantViolated(Invariant.RISING, f"({entry}) follows ({self._entries[-1]}): {seen}")
        self._check_producer_epoch(seen, entry)
        self._check_sequence(seen, entry)
        self._entries.append(entry)
        self._bases.append(entry.base)
        self.end = entry.last + 1

    def _compare(self, seen: ReplicaObservation, entry: Entry) -> None:
        found = bisect_left(self._bases, entry.base)
        if found == 0 and (not self._bases or entry.base < self._bases[0]):
            return  # it is below the first batch of the history: retention removed the log's start unobserved
        known = self._entries[found] if found < len(self._entries) else self._entries[-1]
        if known != entry:
            raise InvariantViolated(Invariant.SAME_BYTES, f"({entry}), but ({known}) is committed there: {seen}")

    def _check_sequence(self, seen: ReplicaObservation, entry: Entry) -> None:
        if entry.producer_id < 0 or entry.sequence < 0:  # not idempotent, or a transaction marker
            return
        producer = entry.producer_id, entry.producer_epoch
        due = self._next_sequences.get(producer, entry.sequence)
        self._next_sequences[producer] = (entry.sequence + entry.last - entry.base + 1) & SEQUENCE_MASK
        if due != entry.sequence:
            raise InvariantViolated(
                Invariant.NO_DUPLICATES, f"the producer's next sequence is {due}, not that of ({entry}): {seen}"
            )


class CommittedHistories:
    """The histories of all partitions, deleted ones included; a recreated topic has a new id, so a new history."""

    def __init__(self) -> None:
        self._by_key: dict[TopicPartition, CommittedHistory] = {}

    def of(self, key: TopicPartition) -> CommittedHistory:
        if key not in self._by_key:
            self._by_key[key] = CommittedHistory(key)
        return self._by_key[key]

    def __len__(self) -> int:
        return sum(map(len, self._by_key.values()))
