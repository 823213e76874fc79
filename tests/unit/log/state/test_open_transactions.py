"""Open transactions and the last stable offset of a partition."""

from pathlib import Path

import pytest

from tailrace.log.state.producers import ProducerStates
from tests.unit.log.logs import (
    DAY_MS,
    NOW,
    cut_file,
    on_loop,
    one_batch,
    open_log,
    put,
    segment_path,
)
from tests.unit.log.state.transacting import aborted, mark, send


@on_loop
async def test_the_first_open_transaction_bounds_the_last_stable_offset(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p")
    put(log)
    assert log.last_stable(log.end) == 1
    assert (send(log, 7), send(log, 8), send(log, 7)) == (1, 2, 3)
    assert log.last_stable(log.end) == 1
    mark(log, 7)
    assert log.last_stable(log.end) == 2
    mark(log, 8, commits=True)
    assert log.last_stable(log.end) == log.end == 6
    assert await aborted(log) == [(7, 1, 4)]


@on_loop
async def test_a_marker_counts_once_it_is_committed(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p")
    send(log, 7)
    marker = mark(log, 7, commits=True)
    assert log.last_stable(marker) == 0  # the marker itself is not committed
    assert log.last_stable(marker + 1) == marker + 1


@on_loop
async def test_nothing_is_stable_above_the_high_watermark(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p")
    put(log)
    put(log)
    send(log, 7)
    assert log.last_stable(1) == 1


@on_loop
async def test_a_torn_marker_leaves_its_transaction_open(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p")
    send(log, 7)
    mark(log, 7)
    cut_file(segment_path(tmp_path / "p"), log.size_bytes - 1)
    log = await open_log(tmp_path / "p")
    assert (log.end, log.last_stable(log.end), await aborted(log)) == (1, 0, [])
    mark(log, 7)
    assert await aborted(log) == [(7, 0, 1)]


@pytest.mark.parametrize("clean", [True, False])
@on_loop
async def test_a_reopened_log_has_all_transaction_state(tmp_path: Path, clean: bool) -> None:
    log = await open_log(tmp_path / "p")
    send(log, 7)
    mark(log, 7, coordinator=3)
    send(log, 8, epoch=2)
    point = await (log.close() if clean else log.checkpoint())
    assert point is not None
    log = await open_log(tmp_path / "p", recovery=point, clean=clean)
    assert (log.last_stable(log.end), await aborted(log)) == (2, [(7, 0, 1)])
    known = log.producers.get(7)
    assert known is not None
    assert known.coordinator_epoch == 3
    mark(log, 8, epoch=2)
    assert await aborted(log) == [(7, 0, 1), (8, 2, 3)]


@on_loop
async def test_a_follower_derives_the_same_transaction_state(tmp_path: Path) -> None:
    leader, follower = await open_log(tmp_path / "l"), await open_log(tmp_path / "f")
    send(leader, 7)
    mark(leader, 7)
    send(leader, 8)
    data = bytearray(segment_path(tmp_path / "l").read_bytes())
    follower.append_as_is(memoryview(data), NOW)
    assert follower.producers.dump() == leader.producers.dump()
    assert (follower.last_stable(3), await aborted(follower)) == (2, [(7, 0, 1)])


@on_loop
async def test_a_fully_truncated_log_waits_for_no_marker(tmp_path: Path) -> None:
    """The markers are gone with the records that the leader no longer has."""
    log = await open_log(tmp_path / "p")
    send(log, 7)
    await log.truncate_fully_and_start_at(100)
    assert log.last_stable(100) == 100


@on_loop
async def test_an_open_transaction_does_not_expire(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p")
    send(log, 7)
    put(log, one_batch(producer=(8, 0, 0)))
    await log.retain(NOW + 2 * DAY_MS, 0)
    assert log.producers.get(7) is not None
    assert log.producers.get(8) is None
    mark(log, 7)
    await log.retain(NOW + 2 * DAY_MS, 0)
    assert log.producers.get(7) is None


def test_snapshots_hold_open_and_just_ended_transactions() -> None:
    states = ProducerStates(DAY_MS)
    states.transactions.begin(8, 30)
    states.transactions.begin(7, 40)
    states.transactions.end(8, 57)
    again = ProducerStates.load(states.dump(), DAY_MS)
    assert again.dump() == states.dump()
    assert [again.transactions.last_stable(high) for high in (20, 57, 58)] == [20, 30, 40]
    assert again.transactions.end(7, 60) == 40
    assert again.transactions.last_stable(60) == 40
