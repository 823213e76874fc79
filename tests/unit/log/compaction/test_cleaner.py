"""The cleaner on small logs whose result can be read off."""

from itertools import pairwise

import pytest

from tailrace.log.compaction.cleaner import Cleaner
from tailrace.log.compaction.fillers import SPAN_MAX, Fillers
from tailrace.log.state.aborted_index import Aborted
from tailrace.records.build import build_batch
from tailrace.records.control import marker_batch
from tailrace.records.header import read_header, stamp
from tailrace.records.opened import batches, open_batch
from tailrace.records.record import NewRecord

SECRET = b"secret"


def batch(base: int, keys: str, epoch: int = 0, value: bytes | None = b"v", producer: int = -1) -> bytes:
    records = [NewRecord(value=value, key=key.encode(), timestamp=base) for key in keys]
    return bytes(
        build_batch(
            records,
            base_offset=base,
            leader_epoch=epoch,
            producer_id=producer,
            producer_epoch=min(producer, 0),
            base_sequence=min(producer, 0),
            transactional=producer >= 0,
        )
    )


def marker(base: int, producer: int, committed: bool = True) -> bytes:
    made = marker_batch(
        committed=committed, producer_id=producer, producer_epoch=0, coordinator_epoch=0, timestamp=base
    )
    stamp(memoryview(made), base, 0)
    return bytes(made)


def offsets(data: bytes) -> list[list[int]]:
    """The offsets of the records of each batch."""
    return [[record.offset for record in open_batch(view)] for view, _ in batches(data)]


def clean(cleaner: Cleaner, data: bytes, horizon: int = 0, aborted: tuple[Aborted, ...] = ()) -> bytes:
    done = cleaner.clean(data, aborted, horizon=horizon, keep_last={})
    return done.data + cleaner.finish().data


def test_the_last_record_before_the_survey_goes_when_the_first_surveyed_one_has_its_key() -> None:
    cleaner, old, new = Cleaner(1 << 20, SECRET), batch(0, "xa"), batch(2, "ay")
    assert cleaner.survey(new, ()).through == 4
    assert offsets(clean(cleaner, old + new)) == [[0], [2, 3]]


def test_a_full_map_stops_before_a_batch_but_not_before_the_first() -> None:
    cleaner = Cleaner(32, SECRET)
    first, second = batch(0, "abc"), batch(3, "d")
    surveyed = cleaner.survey(first + second, ())
    assert (surveyed.through, surveyed.full) == (3, True)


def test_one_filler_for_each_leader_epoch_and_over_slices() -> None:
    cleaner = Cleaner(1 << 20, SECRET)
    log = [batch(0, "a"), batch(1, "a"), batch(2, "a", epoch=1), batch(3, "a", epoch=1), batch(4, "a", epoch=1)]
    cleaner.survey(b"".join(log), ())
    out = b"".join(cleaner.clean(one, (), horizon=0, keep_last={}).data for one in log)
    assert [(one.base_offset, one.last_offset, one.leader_epoch) for _, one in batches(out)] == [
        (0, 1, 0),
        (2, 3, 1),
        (4, 4, 1),
    ]
    assert out.endswith(log[-1])


def test_fillers_longer_than_31_bits_are_split() -> None:
    fillers = Fillers()
    fillers.add(0, SPAN_MAX, 1)
    fillers.add(SPAN_MAX + 1, 3 * SPAN_MAX + 9, 1)
    headers = [one for _, one in batches(fillers.take())]
    assert headers[0].base_offset == 0
    assert headers[-1].last_offset == 3 * SPAN_MAX + 9
    assert all(one.base_offset == before.last_offset + 1 for before, one in pairwise(headers))


@pytest.mark.parametrize("horizon", [0, 2, 3])
def test_a_marker_goes_below_the_horizon_once_its_records_are_gone(horizon: int) -> None:
    cleaner = Cleaner(1 << 20, SECRET)
    log = batch(0, "ab", producer=7) + marker(2, 7, committed=False) + batch(3, "a")
    aborted = (Aborted(7, 0, 2, 3),)
    cleaner.survey(log, aborted)
    done = cleaner.clean(log, aborted, horizon=horizon, keep_last={})
    assert done.removed_records == 2
    assert done.removed_markers == (((7, 2),) if horizon == 3 else ())
    assert [one.is_control for _, one in batches(done.data)] == (
        [False, False] if horizon == 3 else [False, True, False]
    )


def test_a_marker_stays_while_an_emptied_batch_of_its_transaction_stays_for_the_producer() -> None:
    cleaner = Cleaner(1 << 20, SECRET)
    log = batch(0, "ab", producer=7) + marker(2, 7) + batch(3, "ab")
    cleaner.survey(log, ())
    done = cleaner.clean(log, (), horizon=9, keep_last={7: 0})
    assert [(one.records, one.producer_id) for _, one in batches(done.data)] == [(0, 7), (1, 7), (2, -1)]
    assert read_header(done.data).last_sequence == 1


def test_a_survey_after_a_cleaning_begins_a_new_pass() -> None:
    cleaner = Cleaner(1 << 20, SECRET)
    cleaner.survey(batch(5, "a"), ())
    clean(cleaner, batch(5, "a"))
    cleaner.survey(batch(0, "b"), ())
    assert offsets(clean(cleaner, batch(0, "b") + batch(1, "a"))) == [[0], [1]]


def test_half_a_batch_is_refused() -> None:
    with pytest.raises(ValueError, match="after the last whole batch"):
        Cleaner(1 << 20, SECRET).survey(batch(0, "a")[:-1], ())


def test_a_damaged_batch_stays_and_is_reported() -> None:
    cleaner = Cleaner(1 << 20, SECRET)
    damaged = bytearray(batch(0, "a"))
    damaged[-2] ^= 1
    log = bytes(damaged) + batch(1, "a")
    cleaner.survey(log, ())
    done = cleaner.clean(log, (), horizon=0, keep_last={})
    assert done.data == log
    assert [offset for offset, _ in done.unreadable] == [0]
    assert "checksum" in done.unreadable[0][1]


def test_a_horizon_far_above_a_batch_costs_nothing() -> None:
    cleaner, log = Cleaner(1 << 20, SECRET), batch(0, "a", value=None) + batch(1, "b") + batch(2, "b", value=None)
    cleaner.survey(log, ())
    assert offsets(clean(cleaner, log, horizon=2**60)) == [[]]


def test_a_marker_with_a_producers_newest_epoch_stays_until_the_producer_writes_again() -> None:
    """With transactions v2 (KIP-890) the marker alone has it; who reads the log fences older epochs by it."""
    cleaner = Cleaner(1 << 20, SECRET)
    log = batch(0, "a", producer=7) + marker(1, 7) + batch(2, "a")
    cases: tuple[tuple[dict[int, int], bool], ...] = (({7: 0}, True), ({7: 1}, False), ({}, False))
    for epochs, stays in cases:
        cleaner.begin()
        cleaner.survey(log, ())
        done = cleaner.clean(log, (), horizon=9, keep_last={}, keep_epochs=epochs)
        assert any(one.is_control for _, one in batches(done.data)) is stays
