"""What a producer has to send: records gathered into batches, of which one per partition is in flight at a time.

With one batch in flight, order and sequence numbers follow by themselves: a batch gets its sequence number when it is
first sent, keeps it while the broker may have appended it (`uncertain`), and gives it back when the broker certainly
has not. While it is in flight, the next batch of the partition grows.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from math import inf
from typing import Any, Final

from tailrace.model.frozen import frozen
from tailrace.model.ids import PartitionName
from tailrace.model.limits import KiB, MiB
from tailrace.records.record import NewRecord

SEQUENCES: Final = 2**31
NO_SEQUENCE: Final = -1
RECORD_OVERHEAD_BYTES: Final = 32  # at most, of the lengths and deltas of a record without headers


@frozen
class BatchLimits:
    batch_bytes: int = 256 * KiB  # a batch of this size is full; a larger record gets a batch of its own
    buffer_bytes: int = 32 * MiB  # of all records that are not acknowledged
    linger_s: float = 0.0  # how long a batch waits for more records when nothing is in flight
    delivery_s: float = 120.0  # after this long, a record that is not acknowledged has failed


class Batch:
    """Records of one partition, in order. Each of its `tokens` is a sender's, and belongs to the records from that of
    the same place in `firsts` on, up to the next one."""

    __slots__ = (
        "attempts",
        "firsts",
        "missing_since",
        "opened_at",
        "partition",
        "problem",
        "records",
        "sequence",
        "size",
        "tokens",
        "uncertain",
    )

    def __init__(self, partition: PartitionName, opened_at: float) -> None:
        self.partition = partition
        self.opened_at = opened_at
        self.records: list[NewRecord] = []
        self.firsts: list[int] = []
        self.tokens: list[Any] = []
        self.size = 0
        self.sequence = NO_SEQUENCE
        self.uncertain = False  # it was sent, and the broker may have appended it
        self.attempts = 0
        self.missing_since = inf  # when brokers first said that there is no such partition
        self.problem = ""  # why the last attempt failed


class _Partition:
    __slots__ = ("in_flight", "next_sequence", "not_before", "waiting")

    def __init__(self) -> None:
        self.waiting: deque[Batch] = deque()  # the first may have been sent before; the last may still grow
        self.in_flight: Batch | None = None
        self.next_sequence = 0
        self.not_before = 0.0  # when the first batch may be sent again


class Outbox:
    def __init__(self, limits: BatchLimits) -> None:
        self._limits = limits
        self._partitions: dict[PartitionName, _Partition] = {}
        self.size = 0  # bytes of all records that are not acknowledged
        self.flushing = False  # send at once, however small a batch is

    def has_room(self, size: int) -> bool:
        """Whether a record of this size may be added; a large one only if nothing else waits."""
        return self.size == 0 or self.size + size <= self._limits.buffer_bytes

    def add(self, partition: PartitionName, record: NewRecord, token: Any, now: float, size: int = 0) -> None:
        """`size` is that of the record, if the caller knows it."""
        last = self._growing(partition, token, now, size or size_of(record))
        last.records.append(record)

    def add_run(
        self, partition: PartitionName, records: Sequence[NewRecord], token: Any, now: float, size: int
    ) -> None:
        """Add records that stay in one batch, and have one token. `size` is that of all of them."""
        last = self._growing(partition, token, now, size)
        last.records += records

    def _growing(self, partition: PartitionName, token: Any, now: float, size: int) -> Batch:
        """The batch that takes so many bytes, and the token of what the caller adds to it next."""
        found = self._partitions.get(partition)
        if found is None:
            found = self._partitions[partition] = _Partition()
        last = found.waiting[-1] if found.waiting else None
        if last is None or last.attempts or last.size + size > self._limits.batch_bytes:
            last = Batch(partition, now)
            found.waiting.append(last)
        last.firsts.append(len(last.records))
        last.tokens.append(token)
        last.size += size
        self.size += size
        return last

    def portions(self, records: Sequence[NewRecord]) -> Iterator[tuple[Sequence[NewRecord], int]]:
        """The records in portions that fit into a batch, each with its size; a larger record is one of its own."""
        first = total = 0
        for number, record in enumerate(records):
            size = size_of(record)
            if total + size > self._limits.batch_bytes and number > first:
                yield records[first:number], total
                first, total = number, 0
            total += size
        yield records[first:] if first else records, total

    def due(self, now: float, *, uncertain_only: bool = False) -> Iterator[Batch]:
        """The batches to send now; from now on they are in flight, and have sequence numbers."""
        for one in self._ready(uncertain_only):
            if self._due_at(one) <= now:
                batch = one.in_flight = one.waiting.popleft()
                batch.attempts += 1
                if batch.sequence == NO_SEQUENCE:
                    batch.sequence = one.next_sequence
                    one.next_sequence = (batch.sequence + len(batch.records)) % SEQUENCES
                yield batch

    def next_due_at(self, *, uncertain_only: bool = False) -> float:
        """When `due` has a batch; infinity if there is none."""
        return min(map(self._due_at, self._ready(uncertain_only)), default=inf)

    def next_expiry(self) -> float:
        """When the next batch that is not in flight has taken too long."""
        opened = (one.waiting[0].opened_at for one in self._ready(uncertain_only=False))
        return min(opened, default=inf) + self._limits.delivery_s

    def waiting(self) -> list[Batch]:
        """All batches that are not in flight."""
        return [batch for one in self._partitions.values() for batch in one.waiting]

    def tokens(self) -> list[Any]:
        """Those of all records that are not acknowledged."""
        found: list[Any] = []
        for one in self._partitions.values():
            batches = ([one.in_flight] if one.in_flight is not None else []) + list(one.waiting)
            found += [token for batch in batches for token in batch.tokens]
        return found

    def _ready(self, uncertain_only: bool) -> list[_Partition]:
        found = [one for one in self._partitions.values() if one.in_flight is None and one.waiting]
        return [one for one in found if one.waiting[0].uncertain] if uncertain_only else found

    def _due_at(self, one: _Partition) -> float:
        first = one.waiting[0]
        is_full = len(one.waiting) > 1 or first.attempts > 0 or self.flushing
        return max(one.not_before, first.opened_at + (0.0 if is_full else self._limits.linger_s))

    # What became of a batch in flight

    def finished(self, batch: Batch) -> None:
        """The batch was appended, or has failed and is given up."""
        self._partitions[batch.partition].in_flight = None
        self._forget(batch)

    def rejected(self, batch: Batch) -> None:
        """The broker certainly has not appended the batch, and it is given up: its sequence number is free again."""
        self._partitions[batch.partition].next_sequence = batch.sequence
        self.finished(batch)

    def retry(self, batch: Batch, not_before: float) -> None:
        """Send the batch again, before any other of its partition."""
        one = self._partitions[batch.partition]
        one.in_flight = None
        one.waiting.appendleft(batch)
        one.not_before = not_before

    def expire(self, now: float) -> list[Batch]:
        """Give up the batches that are not in flight and took too long; returns them."""
        expired = []
        for one in self._partitions.values():
            while one.waiting and one.waiting[0].opened_at + self._limits.delivery_s <= now and one.in_flight is None:
                batch = one.waiting.popleft()
                if batch.sequence != NO_SEQUENCE and not batch.uncertain:
                    one.next_sequence = batch.sequence
                self._forget(batch)
                expired.append(batch)
        return expired

    def abandon_waiting(self) -> list[Batch]:
        """Give up the batches that no broker can have; returns them."""
        batches = []
        for one in self._partitions.values():
            kept = [batch for batch in one.waiting if batch.uncertain]
            for batch in one.waiting:
                if not batch.uncertain:
                    if batch.sequence != NO_SEQUENCE:
                        one.next_sequence = batch.sequence
                    self._forget(batch)
                    batches.append(batch)
            one.waiting = deque(kept)
        return batches

    def abandon(self) -> list[Batch]:
        """Give up everything; returns the batches."""
        batches = []
        for one in self._partitions.values():
            batches += ([one.in_flight] if one.in_flight is not None else []) + list(one.waiting)
        self._partitions = {}
        self.size = 0
        return batches

    def _forget(self, batch: Batch) -> None:
        self.size -= batch.size

    # Producer epochs

    @property
    def has_uncertain(self) -> bool:
        """Whether a sequence number must stay: a batch is in flight, or was sent before and may be appended."""
        return any(
            one.in_flight is not None or (one.waiting and one.waiting[0].uncertain) for one in self._partitions.values()
        )

    def restart_sequences(self) -> None:
        """The producer has a new epoch: sequence numbers begin anew."""
        for one in self._partitions.values():
            one.next_sequence = 0
            for batch in one.waiting:
                batch.sequence = NO_SEQUENCE

    def __len__(self) -> int:
        """How many batches there are, in flight or waiting."""
        return sum(len(one.waiting) + (one.in_flight is not None) for one in self._partitions.values())


def size_of(record: NewRecord) -> int:
    value, key, headers, _ = record
    size = RECORD_OVERHEAD_BYTES + len(key or b"") + len(value or b"")
    return size + sum(len(name) + len(value or b"") + 10 for name, value in headers) if headers else size
