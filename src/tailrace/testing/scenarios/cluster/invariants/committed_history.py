"""The one history of a partition: what lay below any replica's high watermark, ever.

Whoever looked first writes it down; everybody else is held against it. So it is never changed, and a difference is the
end of the run: two replicas that disagree, or one that came back with something else, or a leader that lacks a part.
Each idempotent producer's sequences follow on each other in it, without a gap and without a repetition.
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
        self._epochs: dict[int, int] = {}  # the newest of each producer
        self._next: dict[tuple[int, int], int] = {}  # the sequence that is due, by producer and epoch

    def __len__(self) -> int:
        return len(self._entries)

    def take(self, seen: ReplicaObservation, entries: Iterable[Entry]) -> None:
        """What lies below a replica's high watermark, in order; what was taken from it before may be left out."""
        for entry in entries:
            if entry.base >= self.end:
                self._append(seen, entry)
            else:
                self._compare(seen, entry)

    def at(self, offset: int) -> Entry | None:
        """The batch that holds an offset; None: it was not seen, or is not committed yet."""
        found = bisect_right(self._bases, offset) - 1
        entry = self._entries[found] if found >= 0 else None
        return entry if entry is not None and offset <= entry.last else None

    def check_leader(self, seen: ReplicaObservation) -> None:
        """A new leader has all that was committed before it (Raft §5.4, Leader Completeness)."""
        if seen.end < self.end:
            raise InvariantViolated(Invariant.PREFIX, f"committed up to {self.end}, a new leader has less: {seen}")

    def _check_epoch(self, seen: ReplicaObservation, entry: Entry) -> None:
        newest = self._epochs.get(entry.producer_id, -1)
        if entry.producer_id >= 0 and entry.producer_epoch < newest:
            raise InvariantViolated(
                Invariant.FENCED, f"({entry}) of epoch {entry.producer_epoch} follows on {newest}: {seen}"
            )
        self._epochs[entry.producer_id] = entry.producer_epoch

    def _append(self, seen: ReplicaObservation, entry: Entry) -> None:
        if entry.base > self.end and seen.start < entry.base and self._entries:
            raise InvariantViolated(Invariant.PREFIX, f"nothing stands between {self.end} and {entry.base}: {seen}")
        if self._entries and entry.epoch < self._entries[-1].epoch:
            raise InvariantViolated(Invariant.RISING, f"({entry}) follows on ({self._entries[-1]}): {seen}")
        self._check_epoch(seen, entry)
        self._check_sequence(seen, entry)
        self._entries.append(entry)
        self._bases.append(entry.base)
        self.end = entry.last + 1

    def _compare(self, seen: ReplicaObservation, entry: Entry) -> None:
        found = bisect_left(self._bases, entry.base)
        if found == 0 and (not self._bases or entry.base < self._bases[0]):
            return  # before the first that was seen: retention was faster than we
        known = self._entries[found] if found < len(self._entries) else self._entries[-1]
        if known != entry:
            raise InvariantViolated(Invariant.SAME_BYTES, f"({entry}) where ({known}) is committed: {seen}")

    def _check_sequence(self, seen: ReplicaObservation, entry: Entry) -> None:
        if entry.producer_id < 0 or entry.sequence < 0:  # the end of a transaction has no sequence
            return
        producer = entry.producer_id, entry.producer_epoch
        due = self._next.get(producer, entry.sequence)
        self._next[producer] = (entry.sequence + entry.last - entry.base + 1) & SEQUENCE_MASK
        if due != entry.sequence:
            raise InvariantViolated(
                Invariant.NO_DUPLICATES, f"sequence {due} of the producer is due, not ({entry}): {seen}"
            )


class CommittedHistories:
    """Of all partitions there ever were; a recreated topic has another id, and a history of its own."""

    def __init__(self) -> None:
        self._by_key: dict[TopicPartition, CommittedHistory] = {}

    def of(self, key: TopicPartition) -> CommittedHistory:
        if key not in self._by_key:
            self._by_key[key] = CommittedHistory(key)
        return self._by_key[key]

    def __len__(self) -> int:
        return sum(map(len, self._by_key.values()))
