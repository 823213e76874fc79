"""What transactional producers and read_committed consumers did, with checks in the manner of Jepsen's Kafka tests.

A history holds the transactions, each with its writes and its outcome as its client knows it, and the polls of readers
with isolation level read_committed. Every value must be unique, or duplicates could not be detected. The checks need
nothing but the history, so they work with any broker:

- **no lost writes**: every write of a committed transaction is read, once a reader has reached its offset;
- **no aborted reads**: no write of an aborted transaction is read;
- **monotonic polls**: within a partition each reader reads offsets in rising order;
- **no duplicates**: no value is at two offsets or in two partitions, and no offset has two values;
- **no write cycles**: if one transaction writes before another in some partition, it does so in every partition.
  Brokers do not guarantee this for concurrent transactions that share partitions, so check it only where transactions
  run one after the other.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from tailrace.model.frozen import frozen


class Outcome(Enum):
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"  # the client was killed, or got no response


class Write(NamedTuple):
    partition: str
    value: str
    offset: int = -1  # -1: unknown to the producer


class ReadRecord(NamedTuple):
    """One record that a poll returned."""

    partition: str
    offset: int
    value: str


@frozen
class Transaction:
    name: str
    outcome: Outcome
    writes: tuple[Write, ...]


@frozen
class Reader:
    """The polls of one reader during one assignment, in order, each with its records in order."""

    name: str
    polls: tuple[tuple[ReadRecord, ...], ...]

    @property
    def records(self) -> Iterator[ReadRecord]:
        return (record for poll in self.polls for record in poll)


@frozen
class TransactionHistory:
    transactions: tuple[Transaction, ...]
    readers: tuple[Reader, ...]
    is_read_to_end: bool = True  # all partitions were read to their end after the last transaction


def violations(history: TransactionHistory, *, check_write_cycles: bool = True) -> list[str]:
    """A sentence for each violation; an empty list if there is none."""
    found = [*lost_writes(history), *aborted_reads(history), *nonmonotonic_polls(history), *duplicates(history)]
    return [*found, *write_cycles(history)] if check_write_cycles else found


def lost_writes(history: TransactionHistory) -> Iterator[str]:
    all_read = [record for reader in history.readers for record in reader.records]
    read = {(record.partition, record.value): None for record in all_read}
    last_offsets: dict[str, int] = {}
    for record in all_read:
        last_offsets[record.partition] = max(record.offset, last_offsets.get(record.partition, -1))
    for transaction in history.transactions:
        for write in transaction.writes if transaction.outcome is Outcome.COMMITTED else ():
            is_passed = 0 <= write.offset <= last_offsets.get(write.partition, -1)
            if (write.partition, write.value) not in read and (history.is_read_to_end or is_passed):
                yield f"lost write: {write.value} of {transaction.name}, committed, was not read from {write.partition}"


def aborted_reads(history: TransactionHistory) -> Iterator[str]:
    aborted = {
        (write.partition, write.value): transaction.name
        for transaction in history.transactions
        if transaction.outcome is Outcome.ABORTED
        for write in transaction.writes
    }
    for reader in history.readers:
        for record in reader.records:
            name = aborted.get((record.partition, record.value))
            if name is not None:
                yield f"aborted read: {reader.name} read {record.value} of {name} at {record.partition}@{record.offset}"


def nonmonotonic_polls(history: TransactionHistory) -> Iterator[str]:
    for reader in history.readers:
        last: dict[str, int] = {}
        for record in reader.records:
            before = last.get(record.partition, -1)
            if record.offset <= before:
                yield f"nonmonotonic poll: {reader.name} read {record.partition}@{record.offset} after @{before}"
            last[record.partition] = max(before, record.offset)


def duplicates(history: TransactionHistory) -> Iterator[str]:
    values: dict[tuple[str, int], str] = {}
    places: dict[str, tuple[str, int]] = {}
    for record in sorted({record: None for reader in history.readers for record in reader.records}):
        at = (record.partition, record.offset)
        if values.setdefault(at, record.value) != record.value:
            yield f"duplicate: {record.partition}@{record.offset} is {values[at]} and {record.value}"
        partition, offset = places.setdefault(record.value, at)
        if (partition, offset) != at:
            yield f"duplicate: {record.value} is at {partition}@{offset} and {record.partition}@{record.offset}"


def write_cycles(history: TransactionHistory) -> Iterator[str]:
    """Cycles of transactions in which each writes before the next in some partition; the first one is reported."""
    after = _write_order(history)
    done: dict[str, None] = {}
    for start in after:
        cycle = _cycle(start, after, done)
        if cycle:
            yield f"write cycle: {' before '.join([*cycle, cycle[0]])}"
            return


def _cycle(start: str, after: Mapping[str, Sequence[str]], done: dict[str, None]) -> list[str]:
    """A cycle that is reachable from `start`, by depth-first search; `done` collects nodes that lead to no cycle."""
    path: dict[str, Iterator[str]] = {}
    node: str | None = start if start not in done else None
    while node is not None:
        path.setdefault(node, iter(after.get(node, ())))
        step = next(path[node], None)
        if step in path:
            nodes = list(path)
            return nodes[nodes.index(step) :]
        if step is not None and step not in done:
            node = step
        elif step is None:
            done[node] = None
            del path[node]
            node = next(reversed(path), None)
    return []


def _write_order(history: TransactionHistory) -> dict[str, list[str]]:
    """For each transaction those that write directly after it in some partition."""
    writers = {
        (write.partition, write.value): transaction.name
        for transaction in history.transactions
        for write in transaction.writes
    }
    by_partition: dict[str, dict[int, str]] = {}
    for reader in history.readers:
        for record in reader.records:
            writer = writers.get((record.partition, record.value))
            if writer is not None:
                by_partition.setdefault(record.partition, {})[record.offset] = writer
    after: dict[str, list[str]] = {}
    for by_offset in by_partition.values():
        for before, then in _neighbours(by_offset[offset] for offset in sorted(by_offset)):
            after.setdefault(before, []).append(then)
    return after


def _neighbours(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    before: str | None = None
    for name in names:
        if before is not None and before != name:
            yield before, name
        before = name
