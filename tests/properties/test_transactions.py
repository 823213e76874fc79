"""Transactions in a log against a naive model: last stable offset, aborted transactions, and what consumers read.

The model is a list of batches, and computes every answer from the whole list. The consumer uses the list of aborted
transactions in each Fetch answer as Kafka's consumers do.
"""

from typing import Literal, NamedTuple, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from tailrace.log.state.aborted_index import Aborted
from tailrace.records.build import build_batch
from tailrace.records.control import Marker, marker_batch, read_control
from tailrace.records.header import read_header
from tailrace.records.opened import batches, open_batch
from tailrace.records.record import NewRecord
from tests.properties.log_state_machine import LogStateMachine
from tests.unit.log.logs import NOW, read, topic

T = TypeVar("T")
Kind = Literal["plain", "sent", "commit", "abort"]

small = topic(segment_bytes=600, index_interval_bytes=100, retention_ms=1)
producers = st.integers(1, 3)


class Entry(NamedTuple):
    """One batch of the model."""

    base: int
    values: list[bytes]
    producer: int
    kind: Kind

    @property
    def end(self) -> int:
        return self.base + max(len(self.values), 1)


class Ended(NamedTuple):
    """A transaction that has ended, in the model."""

    producer: int
    first: int
    marker: int
    aborted: bool


class TransactionMachine(LogStateMachine):
    def __init__(self) -> None:
        super().__init__(small)
        self.entries: list[Entry] = []
        self.epochs = dict.fromkeys(range(1, 4), 0)
        self.start = self.end = self.high_watermark = 0
        self.written = 0

    # Writing

    @rule(producer=producers, count=st.integers(1, 3), outside=st.booleans())
    def send(self, producer: int, count: int, outside: bool) -> None:
        values = [f"{self.written + number}".encode() + b"." * 20 for number in range(count)]
        self.written += count
        sequence = self.next_sequence(producer)
        batch = build_batch(
            [NewRecord(value=value, timestamp=NOW) for value in values],
            producer_id=-1 if outside else producer,
            producer_epoch=-1 if outside else self.epochs[producer],
            base_sequence=-1 if outside else sequence,
            transactional=not outside,
        )
        self.put(batch, Entry(self.end, values, producer, "plain" if outside else "sent"))

    @rule(producer=producers, commits=st.booleans(), raised=st.booleans())
    def mark(self, producer: int, commits: bool, raised: bool) -> None:
        self.epochs[producer] += raised
        batch = marker_batch(
            committed=commits,
            producer_id=producer,
            producer_epoch=self.epochs[producer],
            coordinator_epoch=1,
            timestamp=NOW,
        )
        self.put(batch, Entry(self.end, [], producer, "commit" if commits else "abort"))

    def put(self, batch: bytearray, entry: Entry) -> None:
        async def append() -> None:
            view = memoryview(batch)
            appended = self.log.append(view, read_header(view), 1, NOW, internal=True)
            assert (appended.base_offset, appended.duplicate) == (entry.base, False)

        self.run(append())
        self.entries.append(entry)
        self.end = entry.end

    def next_sequence(self, producer: int) -> int:
        known = self.log.producers.get(producer)
        return 0 if known is None or known.epoch != self.epochs[producer] else known.last_sequence + 1

    # The high watermark, truncation, retention and restarts

    @rule(where=st.floats(0, 1))
    def commit(self, where: float) -> None:
        bounds = [entry.end for entry in self.entries if entry.end >= self.high_watermark] or [self.high_watermark]
        self.high_watermark = bounds[round(where * (len(bounds) - 1))]

    @rule(where=st.floats(0, 1))
    def truncate(self, where: float) -> None:
        ends = [entry.base for entry in self.entries if entry.base >= self.high_watermark]
        if ends:
            self.end = ends[round(where * (len(ends) - 1))]
            self.run(self.log.truncate_to(self.end))
            self.entries = [entry for entry in self.entries if entry.end <= self.end]

    @rule()
    def checkpoint(self) -> None:
        self.point = self.run(self.log.checkpoint())

    @rule()
    def retain(self) -> None:
        self.run(self.log.retain(NOW + 1000, self.stable()))
        self.start = self.log.start

    @rule(clean=st.booleans())
    def restart(self, clean: bool) -> None:
        if clean:
            self.point = self.run(self.log.close())
        self.log = self.run(self.opened(clean=clean))
        self.run(self.log.advance_start(self.start))

    @rule(where=st.floats(0, 1))
    def damage_an_index(self, where: float) -> None:
        """The log rebuilds a damaged index from the batches."""
        files = sorted((self.folder / "p").glob("*.txnindex"))
        if files:
            file = files[round(where * (len(files) - 1))]
            file.write_bytes(file.read_bytes()[:-1])
            self.restart(clean=False)

    # The model

    def fold(self) -> tuple[dict[int, int], list[Ended]]:
        """The first offsets of open transactions, by producer, and the transactions that have ended."""
        opened: dict[int, int] = {}
        ended: list[Ended] = []
        for entry in self.entries:
            if entry.kind == "sent":
                opened.setdefault(entry.producer, entry.base)
            elif entry.kind != "plain" and (first := opened.pop(entry.producer, None)) is not None:
                ended.append(Ended(entry.producer, first, entry.base, entry.kind == "abort"))
        return opened, ended

    def stable(self) -> int:
        opened, ended = self.fold()
        undecided = [*opened.values(), *(one.first for one in ended if one.marker >= self.high_watermark)]
        return max(self.start, min([self.high_watermark, *undecided]))

    def committed(self) -> list[bytes]:
        """The values that a `read_committed` consumer reads from the log start offset on."""
        _, ended = self.fold()
        values = []
        for entry in self.entries:
            ends = [one for one in ended if one.producer == entry.producer and one.first <= entry.base < one.marker]
            if entry.kind == "plain" or (entry.kind == "sent" and not ends[0].aborted if ends else False):
                values += [
                    value
                    for offset, value in enumerate(entry.values, entry.base)
                    if self.start <= offset < self.stable()
                ]
        return values

    # Invariants

    @invariant()
    def the_last_stable_offset_agrees(self) -> None:
        assert (self.log.start, self.log.end) == (self.start, self.end)
        assert self.log.last_stable(self.high_watermark) == self.stable()
        assert self.log.producers.transactions.open == self.fold()[0]

    @invariant()
    def consumers_read_what_was_committed(self) -> None:
        for max_bytes in (1, 400):
            assert self.run(self.consumed(max_bytes)) == self.committed()

    @rule(where=st.floats(0, 1), size=st.integers(1, 12))
    def look_for_aborted(self, where: float, size: int) -> None:
        offset = self.start + round(where * (self.stable() - self.start))
        upto = min(offset + size, self.stable())
        bases = [entry.base for entry in self.entries]
        kept = min([base for base in bases if base >= self.log.segments[0].base], default=0) if self.log.segments else 0
        expected = [
            (one.producer, one.first, one.marker)
            for one in self.fold()[1]
            if one.aborted and one.first < upto and one.marker >= max(offset, kept)
        ]
        found = self.run(self.log.aborted_between_cold(offset, upto))
        assert [one[:3] for one in found] == expected

    async def consumed(self, max_bytes: int) -> list[bytes]:
        """What a `read_committed` consumer of Kafka reads."""
        offset, stable, values = self.start, self.stable(), list[bytes]()
        while offset < stable:
            data, following = await read(self.log, offset, max_bytes, stable)
            if following == offset:
                break
            aborted = await self.log.aborted_between_cold(offset, following)
            values += visible(data, offset, aborted)
            offset = following
        return values


def visible(data: bytes | bytearray | memoryview, offset: int, aborted: list[Aborted]) -> list[bytes]:
    coming = sorted(aborted, key=lambda one: one.first_offset)
    hidden: list[int] = []  # producers whose aborted transaction is being skipped
    values = []
    for batch, header in batches(data):
        while coming and coming[0].first_offset <= header.last_offset:
            hidden.append(coming.pop(0).producer_id)
        if isinstance(marker := read_control(batch), Marker):
            if not marker.committed and header.producer_id in hidden:
                hidden.remove(header.producer_id)
        elif header.producer_id not in hidden:
            values += [record.value or b"" for record in open_batch(batch) if record.offset >= offset]
    return values


TestTransactions = TransactionMachine.TestCase
TestTransactions.settings = settings(
    max_examples=100, stateful_step_count=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
