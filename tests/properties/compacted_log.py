"""A naive model of a compacted log: everything that was ever written, and what any log with compaction must show of it.

A log may lack what compaction or retention has removed, nothing else. `check` reads it as consumers do, and compares:
batches follow each other, those that are left are as they were, for every key the last committed value is readable,
and neither a deleted value nor a record of an aborted transaction is.
"""

from itertools import pairwise
from typing import NamedTuple

from tailrace.log.compaction.cleaner import Cleaner
from tailrace.log.compaction.compaction import Compacted, compact
from tailrace.log.compaction.fillers import is_filler
from tailrace.log.compaction.segment_choice import choose
from tailrace.log.log import Log
from tailrace.log.state.aborted_index import Aborted
from tailrace.records.control import Marker, read_control
from tailrace.records.header import BatchHeader, read_header
from tailrace.records.opened import batches, open_batch
from tailrace.records.record import Record
from tests.unit.log.logs import read

ROOM = 1 << 24  # for the map of keys
SECRET = b"secret of session"
SAME = ("base_offset", "leader_epoch", "last_offset_delta", "producer_id", "producer_epoch", "base_sequence")


class Written(NamedTuple):
    """One batch, as it was stored first."""

    data: bytes
    header: BatchHeader
    records: list[Record]  # data only


class History:
    def __init__(self) -> None:
        self.written: list[Written] = []
        self._fold()

    def add(self, data: bytes) -> None:
        header = read_header(data)
        self.written.append(Written(data, header, [] if header.is_control else open_batch(data)))
        self._fold()

    def truncate(self, end: int) -> None:
        """A power cut has lost everything from `end` on."""
        self.written = [one for one in self.written if one.header.last_offset < end]
        self._fold()

    def _fold(self) -> None:
        self._by_base = {one.header.base_offset: one for one in self.written}
        self._committed: dict[int, bool] = {}  # by base offset; open transactions are missing
        opened: dict[int, list[int]] = {}
        for one in self.written:
            producer, base = one.header.producer_id, one.header.base_offset
            if one.header.is_control:
                marker = read_control(one.data)
                if isinstance(marker, Marker):
                    self._committed.update(dict.fromkeys(opened.pop(producer, ()), marker.committed))
            elif one.header.is_transactional:
                opened.setdefault(producer, []).append(base)
            else:
                self._committed[base] = True
        self.open = dict.fromkeys(producer for producer in opened)
        self.last_stable = min((bases[0] for bases in opened.values()), default=self.end)

    @property
    def end(self) -> int:
        return self.written[-1].header.last_offset + 1 if self.written else 0

    def original(self, base: int) -> Written:
        return self._by_base[base]

    def is_committed(self, base: int) -> bool | None:
        return self._committed.get(base)

    def committed(self, before: int) -> list[Record]:
        """The records that consumers with isolation level read_committed see in a log without compaction."""
        return [
            record
            for one in self.written
            if self._committed.get(one.header.base_offset)
            for record in one.records
            if record.offset < before
        ]

    def survivors(self, start: int, before: int, horizon: int) -> list[Record]:
        """What is left of everything between these offsets once all of it was compacted."""
        committed = self.committed(before)
        last = {record.key: record.offset for record in committed}
        return [
            record
            for record in committed
            if record.offset >= start
            and (
                record.key is None
                or (record.offset == last[record.key] and (record.value is not None or record.offset >= horizon))
            )
        ]

    def last_of(self, producer: int) -> Written | None:
        mine = [one for one in self.written if one.header.producer_id == producer and not one.header.is_control]
        return mine[-1] if mine else None

    def next_sequence(self, producer: int) -> int:
        last = self.last_of(producer)
        return 0 if last is None else last.header.last_sequence + 1


async def stored(log: Log, limit: int | None = None) -> list[tuple[bytes, BatchHeader]]:
    """All batches of a log, read in small pieces; each begins where the one before it ended."""
    limit, offset, found = log.end if limit is None else limit, log.start, list[tuple[bytes, BatchHeader]]()
    while offset < limit:
        data, following = await read(log, offset, 900, limit)
        assert following > offset or not data
        if following == offset:
            break
        found += [(bytes(batch), header) for batch, header in batches(data)]
        offset = following
    for (_, one), (_, other) in pairwise(found):
        assert other.base_offset == one.last_offset + 1
    assert not found or (found[0][1].base_offset <= log.start and found[-1][1].last_offset + 1 == log.end)
    return found


def data_records(found: list[tuple[bytes, BatchHeader]], start: int) -> list[Record]:
    """What a consumer with isolation level read_uncommitted is given."""
    return [
        record
        for data, header in found
        if not header.is_control
        for record in open_batch(data)
        if record.offset >= start
    ]


def visible(found: list[tuple[bytes, BatchHeader]], aborted: list[Aborted], start: int, limit: int) -> list[Record]:
    """What a consumer with isolation level read_committed makes of these batches, in the way of Kafka's clients."""
    waiting = sorted((one.first_offset, one.producer_id) for one in aborted)
    skipped: dict[int, None] = {}
    records: list[Record] = []
    for data, header in found:
        if header.last_offset >= limit:
            break
        while waiting and waiting[0][0] <= header.last_offset:
            skipped[waiting.pop(0)[1]] = None
        if header.is_control:
            marker = read_control(data)
            if isinstance(marker, Marker) and not marker.committed:
                skipped.pop(header.producer_id, None)
        elif not header.is_transactional or header.producer_id not in skipped:
            records += [record for record in open_batch(data) if record.offset >= start]
    return records


async def check(log: Log, history: History, high_watermark: int) -> None:
    """Check everything that must be true of a log at any time, whatever was compacted of it."""
    assert (log.damage, log.failed) == (None, None)
    found = await stored(log)
    for data, header in found:
        if not is_filler(header):
            _check_batch(data, header, history.original(header.base_offset))
    stable = log.last_stable(high_watermark)
    if log.end == history.end == high_watermark:
        assert stable == max(log.start, history.last_stable)
    seen = visible(found, await log.aborted_between_cold(log.start, stable), log.start, stable)
    committed = {record.offset: record for record in history.committed(history.end)}
    for record in seen:
        assert record == committed.get(record.offset), "an aborted record, or one that was never written"
    if log.end < history.end:  # it may lack records that were superseded by some that it has not fetched yet
        last = {record.key: record.offset for record in committed.values()}
        expected = [record for record in committed.values() if record.key is None or last[record.key] < stable]
    else:
        expected = list(committed.values())
    _check_table(log, seen, [record for record in expected if record.offset < stable])


def _check_batch(data: bytes, header: BatchHeader, was: Written) -> None:
    if header.records == was.header.records:
        assert data == was.data
        return
    assert [getattr(header, name) for name in SAME] == [getattr(was.header, name) for name in SAME]
    assert not header.is_control
    records = open_batch(data)
    assert [record for record in was.records if record in records] == records


def _check_table(log: Log, seen: list[Record], committed: list[Record]) -> None:
    table = {record.key: record for record in seen if record.key is not None}
    for key, last in {record.key: record for record in committed if record.key is not None}.items():
        if last.offset < log.start:
            assert key not in table
        elif last.value is not None:
            assert table.get(key) == last, f"the last value of {key!r} is not readable"
        elif key in table:
            assert table[key] == last, f"{key!r} was deleted and is back"
        else:
            assert last.offset < log.horizon, f"the tombstone of {key!r} was removed too early"
    keyless = [record for record in committed if record.key is None and record.offset >= log.start]
    assert [record for record in seen if record.key is None] == keyless


async def compact_once(log: Log, stable: int, removable: int, map_bytes: int = ROOM) -> Compacted | None:
    """One pass with the cleaner of a broker; None: nothing is due."""
    choice = await choose(log, stable, log.ports.clock.wall_ms())
    if choice is None:
        return None
    session = log.ports.offload.session(Cleaner, map_bytes, SECRET)

    async def moved(_: int) -> None:
        pass

    try:
        return await compact(log, choice, session, moved, lambda: min(removable, log.horizon))
    finally:
        session.close()
