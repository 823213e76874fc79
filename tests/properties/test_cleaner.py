"""The cleaner against a naive model: random logs, sliced anywhere, in one or several passes."""

import struct
from typing import NamedTuple

from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.log.compaction.cleaner import Cleaned, Cleaner
from tailrace.log.compaction.fillers import is_filler
from tailrace.log.state.aborted_index import Aborted
from tailrace.records.build import TimestampType, build_batch
from tailrace.records.compress import Compression
from tailrace.records.control import leader_change_batch, marker_batch
from tailrace.records.header import CHECKED_FROM, CRC_AT, BatchHeader, read_header, stamp
from tailrace.records.opened import batches, open_batch
from tailrace.records.record import NewRecord, Record
from tests.properties.record_strategies import codecs, headers, timestamps

SECRET = b"s" * 16
PLENTY = 1 << 24

keys = st.none() | st.sampled_from([b"", b"a", b"b", b"c" * 40, b"d" * 200])
new_records = st.builds(NewRecord, st.none() | st.binary(max_size=20), keys, headers, timestamps)


class Step(NamedTuple):
    """One batch to be written; `what` may turn it into something else than data."""

    what: str
    records: list[NewRecord]
    codec: Compression
    timestamp_type: TimestampType
    producer: int
    new_epoch: bool


steps = st.lists(
    st.builds(
        Step,
        st.sampled_from(["plain", "plain", "plain", "idempotent", "open", "open", "commit", "abort", "raft", "broken"]),
        st.lists(new_records, min_size=1, max_size=6),
        codecs,
        st.sampled_from(["CreateTime", "LogAppendTime"]),
        st.integers(1, 3),
        st.booleans(),
    ),
    min_size=1,
    max_size=25,
)


class Batch(NamedTuple):
    data: bytes
    what: str
    producer: int


class Log(NamedTuple):
    batches: list[Batch]
    aborted: tuple[Aborted, ...]


def written(wanted: list[Step]) -> Log:
    """The log with these batches; transactions that are open at its end are aborted."""
    made: list[Batch] = []
    aborted: list[Aborted] = []
    opened: dict[int, int] = {}
    offset, epoch = 0, 0
    ends = [Step("abort", [], "none", "CreateTime", producer, False) for producer in (1, 2, 3)]
    for step in [*wanted, *ends]:
        epoch += step.new_epoch
        producer = step.producer
        if step.what in ("commit", "abort"):
            if producer not in opened:
                continue
            batch = marker_batch(
                committed=step.what == "commit",
                producer_id=producer,
                producer_epoch=0,
                coordinator_epoch=0,
                timestamp=9,
            )
            first = opened.pop(producer)
            if step.what == "abort":
                aborted.append(Aborted(producer, first, offset, 0))
        elif step.what == "raft":
            batch = leader_change_batch(
                leader=1, voters=[1], granting=[1], base_offset=0, leader_epoch=0, timestamp=step.records[0].timestamp
            )
        else:
            transactional = step.what == "open"
            if transactional:
                opened.setdefault(producer, offset)
            batch = build_batch(
                step.records,
                compression=step.codec,
                timestamp_type=step.timestamp_type,
                producer_id=producer if step.what in ("open", "idempotent") else -1,
                producer_epoch=0 if step.what in ("open", "idempotent") else -1,
                base_sequence=offset if step.what in ("open", "idempotent") else -1,
                transactional=transactional,
            )
            if step.what == "broken":  # under a right checksum
                batch += b"\xff"
                struct.pack_into(">i", batch, 8, len(batch) - 12)
                struct.pack_into(">I", batch, CRC_AT, crc32c(bytes(batch[CHECKED_FROM:])))
                try:
                    open_batch(batch)
                except Exception:
                    pass
                else:
                    continue
        stamp(memoryview(batch), offset, epoch)
        made.append(Batch(bytes(batch), step.what, producer))
        offset = read_header(batch).last_offset + 1
    return Log(made, tuple(aborted))


def is_aborted(header: BatchHeader, aborted: tuple[Aborted, ...]) -> bool:
    return header.is_transactional and any(
        one.producer_id == header.producer_id and one.first_offset <= header.base_offset <= one.last_offset
        for one in aborted
    )


def model(log: Log, horizon: int) -> list[Record]:
    """The data records that must stay."""
    committed: list[Record] = []
    for batch in log.batches:
        header = read_header(batch.data)
        if batch.what in ("plain", "idempotent", "open") and not is_aborted(header, log.aborted):
            committed += open_batch(batch.data)
    last = {record.key: record.offset for record in committed}
    return [
        record
        for record in committed
        if record.key is None
        or (record.offset >= last.get(record.key, -1) and (record.value is not None or record.offset >= horizon))
    ]


def sliced(log: list[bytes], cuts: set[int]) -> list[bytes]:
    out = [b""]
    for index, batch in enumerate(log):
        if index in cuts:
            out.append(b"")
        out[-1] += batch
    return [piece for piece in out if piece]


def run(
    cleaner: Cleaner,
    data: list[bytes],
    cuts: set[int],
    aborted: tuple[Aborted, ...],
    horizon: int,
    keep_last: dict[int, int],
    first: int = 0,
) -> tuple[list[bytes], list[Cleaned], int, bool]:
    """One pass that surveys from `first` on; what is not surveyed stays as it is."""
    upto, full = first, False
    cleaner.begin()
    for piece in sliced([one for one in data if read_header(one).base_offset >= first], cuts):
        surveyed = cleaner.survey(piece, aborted)
        upto, full = surveyed.through, surveyed.full
        if full:
            break
    done = [
        cleaner.clean(piece, aborted, horizon=horizon, keep_last=keep_last)
        for piece in sliced([one for one in data if read_header(one).base_offset < upto], cuts)
    ]
    done.append(cleaner.finish())
    out = b"".join(one.data for one in done)
    rest = [one for one in data if read_header(one).base_offset >= upto]
    return [bytes(view) for view, _ in batches(out)] + rest, done, upto, full


def data_records(log: list[bytes], broken: set[bytes]) -> list[Record]:
    return [
        record for one in log if one not in broken and not read_header(one).is_control for record in open_batch(one)
    ]


@given(steps, st.sets(st.integers(0, 25)), st.integers(0, 120), st.sets(st.integers(1, 3)))
@settings(max_examples=150, deadline=None)
def test_exactly_the_right_records_stay(wanted: list[Step], cuts: set[int], horizon: int, active: set[int]) -> None:
    log = written(wanted)
    data = [batch.data for batch in log.batches]
    if not data:
        return
    broken = {batch.data for batch in log.batches if batch.what == "broken"}
    keep_last = {
        batch.producer: read_header(batch.data).base_offset
        for batch in log.batches
        if batch.what in ("open", "idempotent") and batch.producer in active
    }
    end = read_header(data[-1]).last_offset + 1
    cleaner = Cleaner(PLENTY, SECRET)
    out, done, upto, full = run(cleaner, data, cuts, log.aborted, horizon, keep_last)
    assert (upto, full) == (end, False)
    stay = model(log, horizon)
    assert data_records(out, broken) == stay
    assert sum(one.removed_records for one in done) == len(
        data_records([one for one in data if one not in broken], broken)
    ) - len(stay)
    check_batches(log, data, out, done, horizon, keep_last)
    left = tuple(one for one in log.aborted if (one.producer_id, one.last_offset) not in removed_markers(done))
    again, twice, _, _ = run(cleaner, out, cuts, left, horizon, keep_last)
    assert again == out
    assert not any(one.removed_records or one.removed_markers for one in twice)
    lookups, _, _, _ = run(cleaner, out, cuts, left, horizon, keep_last, first=end)  # nothing to survey
    assert lookups == out


def removed_markers(done: list[Cleaned]) -> set[tuple[int, int]]:
    return {marker for one in done for marker in one.removed_markers}


def check_batches(
    log: Log, data: list[bytes], out: list[bytes], done: list[Cleaned], horizon: int, keep_last: dict[int, int]
) -> None:
    before = {read_header(one).base_offset: one for one in data}
    after = {read_header(one).base_offset: one for one in out}
    expected, was_filler = read_header(data[0]).base_offset, None
    for one in out:  # contiguous; no two fillers of an epoch side by side
        header = read_header(one)
        assert header.base_offset == expected
        expected = header.last_offset + 1
        if is_filler(header):
            assert (len(one), header.max_timestamp, header.attributes) == (61, -1, 0)
            assert was_filler != header.leader_epoch
        was_filler = header.leader_epoch if is_filler(header) else None
    assert expected == read_header(data[-1]).last_offset + 1
    left: set[int] = set()
    for batch in log.batches:
        old = read_header(batch.data)
        now = after.get(old.base_offset)
        stays = now is not None and not is_filler(read_header(now))
        if batch.what in ("raft", "broken"):
            assert now == batch.data
        elif batch.what in ("commit", "abort"):
            assert stays == (old.base_offset >= horizon or batch.producer in left)
            assert stays or (batch.producer, old.base_offset) in removed_markers(done)
            assert not stays or now == batch.data
            left.discard(batch.producer)
        elif now is not None and stays:
            check_kept(batch.data, now)
            if batch.what == "open":
                left.add(batch.producer)
        else:
            assert keep_last.get(old.producer_id) != old.base_offset
    assert {offset for one in done for offset, _ in one.unreadable} == {
        offset for offset, one in before.items() if any(one == b.data and b.what == "broken" for b in log.batches)
    }


def check_kept(before: bytes, now: bytes) -> None:
    old, new = read_header(before), read_header(now)
    if new.records == old.records:
        assert now == before
        return
    same = ("base_offset", "last_offset", "leader_epoch", "producer_id", "producer_epoch", "base_sequence")
    assert [getattr(new, name) for name in same] == [getattr(old, name) for name in same]
    records = open_batch(now)
    if records:
        assert new.attributes == old.attributes
        assert new.max_timestamp == max(record.timestamp for record in records)
    else:
        assert new.attributes == old.attributes & ~7


@given(steps, st.sets(st.integers(0, 25)), st.integers(1, 4), st.integers(0, 120))
@settings(max_examples=80, deadline=None)
def test_a_small_map_needs_several_passes(wanted: list[Step], cuts: set[int], room: int, horizon: int) -> None:
    log = written(wanted)
    data = [batch.data for batch in log.batches]
    if not data:
        return
    broken = {batch.data for batch in log.batches if batch.what == "broken"}
    end, first, aborted = read_header(data[-1]).last_offset + 1, 0, log.aborted
    cleaner = Cleaner(room * 32, SECRET)
    while first < end:
        data, done, upto, _ = run(cleaner, data, cuts, aborted, min(horizon, first), {}, first)
        aborted = tuple(one for one in aborted if (one.producer_id, one.last_offset) not in removed_markers(done))
        assert upto > first
        first = upto
    data, _, _, _ = run(cleaner, data, cuts, aborted, horizon, {}, first)
    assert data_records(data, broken) == model(log, horizon)
