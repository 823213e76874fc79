"""A log against a naive model, a list of records: appends, retries, reads, maintenance, restarts and kills."""

import asyncio
from pathlib import Path
from typing import NamedTuple, TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from tailrace.log.directory.inspect import verify
from tailrace.log.log import Appended
from tailrace.model.faults import OffsetOutOfRange, OutOfOrderSequence
from tailrace.records.header import PREFIX_BYTES, check_batch, read_header
from tailrace.records.opened import batches, open_batch
from tests.properties.log_state_machine import LogStateMachine
from tests.unit.log.logs import NOW, image_of, one_batch, open_log, read, restore, segment_path, topic

T = TypeVar("T")

MINUTE_MS = 60_000
small = topic(segment_bytes=1024, index_interval_bytes=200, retention_ms=MINUTE_MS)


class Sent(NamedTuple):
    """One batch of the model."""

    base: int
    values: list[bytes]
    times: list[int]
    producer: tuple[int, int, int] | None

    @property
    def end(self) -> int:
        return self.base + len(self.values)


class LogMachine(LogStateMachine):
    def __init__(self) -> None:
        super().__init__(small)
        self.sent: list[Sent] = []
        self.start = 0
        self.end = 0
        self.epoch = 1
        self.time = NOW

    # Writing

    @rule(
        values=st.lists(st.binary(max_size=120), min_size=1, max_size=4),
        producer=st.none() | st.integers(1, 2),
        steps=st.lists(st.integers(-500, 2000), min_size=4, max_size=4),
    )
    def append(self, values: list[bytes], producer: int | None, steps: list[int]) -> None:
        times = [self.time + sum(steps[: number + 1]) for number in range(len(values))]
        self.time = max(self.time, *times)
        identity = None if producer is None else (producer, 0, self.next_sequence(producer))
        batch = Sent(self.end, values, times, identity)
        assert self.put(batch)[:4] == (self.end, self.end + len(values) - 1, False, -1)
        self.sent.append(batch)
        self.end = batch.end

    @rule(back=st.integers(1, 5), producer=st.integers(1, 2))
    def retry(self, back: int, producer: int) -> None:
        mine = self.known(producer)
        if len(mine) >= back:
            original = mine[-back]
            assert self.put(original)[:4] == (original.base, original.end - 1, True, -1)

    @rule(producer=st.integers(1, 2))
    def skip_a_sequence(self, producer: int) -> None:
        if self.known(producer):
            identity = (producer, 0, self.next_sequence(producer) + 1)
            with pytest.raises(OutOfOrderSequence):
                self.put(Sent(self.end, [b"x"], [self.time], identity))

    def put(self, batch: Sent) -> Appended:
        async def append() -> Appended:
            data = one_batch(batch.values, timestamps=batch.times, producer=batch.producer)
            return self.log.append(data, check_batch(data), self.epoch, self.time)

        return self.run(append())

    def next_sequence(self, producer: int) -> int:
        mine = [batch for batch in self.sent if batch.producer is not None and batch.producer[0] == producer]
        return 0 if not mine else mine[-1].producer[2] + len(mine[-1].values)  # type: ignore[index]

    def known(self, producer: int) -> list[Sent]:
        """The batches of a producer that the log must know; it may forget those below its start."""
        mine = [batch for batch in self.sent if batch.producer is not None and batch.producer[0] == producer]
        return [batch for batch in mine if batch.base >= self.start]

    @rule()
    def elect(self) -> None:
        self.epoch += 1

    # Reading

    @rule(where=st.floats(0, 1), max_bytes=st.sampled_from([1, 200, 5000]), cold=st.booleans(), upto=st.floats(0, 1))
    def read(self, where: float, max_bytes: int, cold: bool, upto: float) -> None:
        offset = self.start + round(where * (self.end - self.start))
        bounds = [batch.end for batch in self.sent] or [0]
        limit = bounds[round(upto * (len(bounds) - 1))]
        self.disk.cold = cold
        data, following = self.run(read(self.log, offset, max_bytes, limit))
        self.disk.cold = False
        expected = [batch for batch in self.sent if batch.end > offset and batch.end <= limit]
        got = [header.base_offset for _, header in batches(data)]
        assert got == [batch.base for batch in expected[: len(got)]]
        assert bool(got) == bool(expected)
        assert following == (expected[len(got) - 1].end if got else offset)
        assert len(got) <= 1 or len(data) <= max_bytes
        for raw, batch in zip(batches(data), expected, strict=False):
            assert [record.value for record in open_batch(raw[0])] == batch.values

    @rule(beyond=st.sampled_from([-1, 1]))
    def read_outside(self, beyond: int) -> None:
        with pytest.raises(OffsetOutOfRange):
            self.log.read(self.start - 1 if beyond < 0 else self.end + 1, 100, self.end)

    @rule(wanted=st.integers(-5 * MINUTE_MS, 5 * MINUTE_MS), upto=st.floats(0, 1))
    def look_up(self, wanted: int, upto: float) -> None:
        bounds = [batch.end for batch in self.sent] or [0]
        limit = bounds[round(upto * (len(bounds) - 1))]
        records = [row for row in self.rows() if row[0] < limit]
        found = next((row for row in records if row[1] >= NOW + wanted), None)
        answer = self.run(self.log.offset_for_time(NOW + wanted, limit))
        assert (answer and answer[:2]) == found
        newest = max(records, key=lambda row: (row[1], -row[0]), default=None)
        answer = self.run(self.log.max_timestamp(limit))
        assert (answer and answer[:2]) == newest

    def rows(self) -> list[tuple[int, int]]:
        """Offset and timestamp of every record from the start on."""
        rows = [(batch.base + at, time) for batch in self.sent for at, time in enumerate(batch.times)]
        return [row for row in rows if row[0] >= self.start]

    # Maintenance

    @rule()
    def checkpoint(self) -> None:
        self.point = self.run(self.log.checkpoint())

    @rule(where=st.floats(0, 1))
    def truncate(self, where: float) -> None:
        offset = self.start + round(where * (self.end - self.start))
        if any(batch.base < self.start <= offset < batch.end for batch in self.sent):
            return  # it would truncate below the log start
        self.run(self.log.truncate_to(offset))
        self.end = min([batch.base for batch in self.sent if batch.end > offset], default=self.end)
        self.sent = [batch for batch in self.sent if batch.end <= offset]

    @rule(where=st.floats(0, 1))
    def delete_records(self, where: float) -> None:
        self.start += round(where * (self.end - self.start) / 2)
        self.run(self.log.advance_start(self.start))

    @rule(later=st.integers(0, 2 * MINUTE_MS), where=st.floats(0, 1))
    def retain(self, later: int, where: float) -> None:
        high_watermark = self.start + round(where * (self.end - self.start))
        self.run(self.log.retain(self.time + later, high_watermark))
        assert self.start <= self.log.start <= max(self.start, high_watermark)
        gone = [time for offset, time in self.rows() if offset < self.log.start]
        assert all(time < self.time + later - MINUTE_MS for time in gone)
        self.start = self.log.start

    # Restarts

    @rule()
    def stop_and_start(self) -> None:
        self.point = self.run(self.log.close())
        self.reopen(clean=True)

    @rule()
    def kill_and_start(self) -> None:
        self.reopen(clean=False)

    def reopen(self, *, clean: bool) -> None:
        self.log = self.run(self.opened(clean=clean))
        assert self.log.start <= self.start
        self.run(self.log.advance_start(self.start))  # as the metadata log would

    # Invariants

    @invariant()
    def offsets_agree(self) -> None:
        assert (self.log.start, self.log.end, self.log.durable) == (self.start, self.end, self.end)
        assert self.log.damage is None
        assert self.log.failed is None

    @invariant()
    def epochs_agree(self) -> None:
        entries = self.log.epochs.entries()
        assert entries == sorted(entries)
        assert all(start < self.end for _, start in entries)

    @precondition(lambda self: self.end > self.start)
    @rule()
    def verify_files(self) -> None:
        report = verify(self.disk, str(self.folder / "p"))
        assert (report.problems, report.end) == ((), self.end)


TestLog = LogMachine.TestCase
TestLog.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    sizes=st.lists(st.integers(0, 300), min_size=1, max_size=12),
    safe=st.integers(0, 12),
    lost=st.lists(st.integers(0, 11), max_size=3),
    torn=st.integers(0, 400),
)
def test_only_what_was_not_fsynced_may_be_lost(
    tmp_path: Path, sizes: list[int], safe: int, lost: list[int], torn: int
) -> None:
    """After a power cut any write above the recovery point may be zeros, and the last one torn."""
    safe = min(safe, len(sizes))

    async def run() -> None:
        restore(tmp_path / "p", {})
        log = await open_log(tmp_path / "p")
        point = None
        for number, size in enumerate(sizes):
            if number == safe:
                point = await log.checkpoint()
            data = one_batch([b"x" * size])
            log.append(data, check_batch(data), 1, NOW)
        if safe == len(sizes):
            point = await log.checkpoint()
        path = segment_path(tmp_path / "p")
        good = bytearray(image_of(tmp_path / "p")[path.name])
        bad, kept = bytearray(good), len(sizes)
        for number, place in enumerate(places(good)):
            if number >= safe and number in lost:
                bad[place] = bytes(place.stop - place.start)
                kept = min(kept, number)
        last = places(good)[-1]
        if safe < len(sizes) and torn and torn < last.stop - last.start:
            del bad[last.stop - torn :]
            kept = min(kept, len(sizes) - 1)
        path.write_bytes(bad)
        log = await open_log(tmp_path / "p", recovery=point)
        assert (log.damage, log.end) == (None, kept)
        assert path.read_bytes() == good[: log.size_bytes]

    asyncio.run(run())


def places(data: bytearray) -> list[slice]:
    """The bytes of each batch."""
    found, at = [], 0
    while at < len(data):
        size = read_header(data, at).length + PREFIX_BYTES
        found.append(slice(at, at + size))
        at += size
    return found
