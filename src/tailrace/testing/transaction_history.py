"""What producers and readers of committed records saw, and checks of it in the manner of Jepsen's Kafka tests.

A history is made of transactions, each with what it wrote and how it ended as far as its client knows, and of polls by
readers that want committed records only. Values are unique: whoever writes one twice cannot tell a duplicate. The
checks need nothing but the history, so they hold for any broker:

- **no lost write**: what a committed transaction wrote is read, once a reader has come so far;
- **no aborted read**: what an aborted transaction wrote is never read;
- **monotonic polls**: no reader goes back, or meets an offset twice;
- **no duplicates**: no value stands at two offsets, of one partition or of two, and no offset has two values;
- **no write cycles**: if a transaction's write stands before another's in one partition, then in every one. Brokers do
  not promise that to transactions that run at the same time and share partitions; it is for those that take turns.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from tailrace.model.frozen import frozen


class Outcome(Enum):
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"  # its client was killed, or heard nothing


class Write(NamedTuple):
    partition: str
    value: str
    offset: int = -1  # -1: the producer does not know where it stands


class Seen(NamedTuple):
    """One record that a poll has brought."""

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
    """One reader's polls in their order, each with its records in theirs, from an assignment to the next."""

    name: str
    polls: tuple[tuple[Seen, ...], ...]

    @property
    def seen(self) -> Iterator[Seen]:
        return (one for poll in self.polls for one in poll)


@frozen
class TransactionHistory:
    transactions: tuple[Transaction, ...]
    readers: tuple[Reader, ...]
    is_read_to_end: bool = True  # all partitions were, after the last transaction


def violations(history: TransactionHistory, *, write_cycles: bool = True) -> list[str]:
    """Everything that is wrong, in sentences; nothing: the history is as it should be."""
    found = [*lost_writes(history), *aborted_reads(history), *unsteady_polls(history), *duplicates(history)]
    return [*found, *cycles_of_writes(history)] if write_cycles else found


def lost_writes(history: TransactionHistory) -> Iterator[str]:
    read = {(seen.partition, seen.value): None for reader in history.readers for seen in reader.seen}
    ends: dict[str, int] = {}
    for seen in (one for reader in history.readers for one in reader.seen):
        ends[seen.partition] = max(seen.offset, ends.get(seen.partition, -1))
    for one in history.transactions:
        for write in one.writes if one.outcome is Outcome.COMMITTED else ():
            passed = 0 <= write.offset <= ends.get(write.partition, -1)
            if (write.partition, write.value) not in read and (history.is_read_to_end or passed):
                yield f"lost write: {write.value} of {one.name}, committed, was not read from {write.partition}"


def aborted_reads(history: TransactionHistory) -> Iterator[str]:
    aborted = {
        (write.partition, write.value): one.name
        for one in history.transactions
        if one.outcome is Outcome.ABORTED
        for write in one.writes
    }
    for reader in history.readers:
        for seen in reader.seen:
            name = aborted.get((seen.partition, seen.value))
            if name is not None:
                yield f"aborted read: {reader.name} read {seen.value} of {name} at {seen.partition}@{seen.offset}"


def unsteady_polls(history: TransactionHistory) -> Iterator[str]:
    for reader in history.readers:
        last: dict[str, int] = {}
        for seen in reader.seen:
            before = last.get(seen.partition, -1)
            if seen.offset <= before:
                yield f"unsteady poll: {reader.name} read {seen.partition}@{seen.offset} after @{before}"
            last[seen.partition] = max(before, seen.offset)


def duplicates(history: TransactionHistory) -> Iterator[str]:
    values: dict[tuple[str, int], str] = {}
    places: dict[str, tuple[str, int]] = {}
    for seen in sorted({one: None for reader in history.readers for one in reader.seen}):
        at = (seen.partition, seen.offset)
        if values.setdefault(at, seen.value) != seen.value:
            yield f"duplicate: {seen.partition}@{seen.offset} is {values[at]} and {seen.value}"
        partition, offset = places.setdefault(seen.value, at)
        if (partition, offset) != at:
            yield f"duplicate: {seen.value} stands at {partition}@{offset} and {seen.partition}@{seen.offset}"


def cycles_of_writes(history: TransactionHistory) -> Iterator[str]:
    """Transactions that stand before each other, each in some partition: a way round in the graph of who is next."""
    after = _order(history)
    done: dict[str, None] = {}
    for start in after:
        cycle = _cycle(start, after, done)
        if cycle:
            yield f"write cycle: {' before '.join([*cycle, cycle[0]])}"
            return


def _cycle(start: str, after: Mapping[str, Sequence[str]], done: dict[str, None]) -> list[str]:
    """A way from `start` that comes back to itself, by depth first; `done` are those from where no way does."""
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


def _order(history: TransactionHistory) -> dict[str, list[str]]:
    """Who stands directly after whom, in any partition."""
    writers = {(write.partition, write.value): one.name for one in history.transactions for write in one.writes}
    by_partition: dict[str, dict[int, str]] = {}
    for reader in history.readers:
        for seen in reader.seen:
            writer = writers.get((seen.partition, seen.value))
            if writer is not None:
                by_partition.setdefault(seen.partition, {})[seen.offset] = writer
    after: dict[str, list[str]] = {}
    for placed in by_partition.values():
        for before, then in _neighbours(placed[offset] for offset in sorted(placed)):
            after.setdefault(before, []).append(then)
    return after


def _neighbours(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    before: str | None = None
    for name in names:
        if before is not None and before != name:
            yield before, name
        before = name
