"""Transactions in one partition's log: what opens and ends them, what is stable, and what was aborted."""

import asyncio
from pathlib import Path

import pytest

from tailrace.log.log import Log
from tailrace.log.state.producers import ProducerStates
from tailrace.model.faults import InvalidTransactionState, OutOfOrderSequence, StaleProducerEpoch
from tests.unit.log.logs import (
    DAY_MS,
    NOW,
    cut_file,
    image_of,
    names,
    on_loop,
    one_batch,
    open_log,
    put,
    restore,
    segment_path,
    topic,
    trouble,
)
from tests.unit.log.state.transacting import mark, send


async def aborted(log: Log, offset: int = 0, upto: int | None = None) -> list[tuple[int, int, int]]:
    found = await log.aborted_between_cold(offset, log.end if upto is None else upto)
    return [one[:3] for one in found]


@on_loop
async def test_the_first_open_transaction_bounds_what_is_stable(tmp_path: Path) -> None:
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
    assert log.last_stable(marker) == 0  # the marker itself is not
    assert log.last_stable(marker + 1) == marker + 1


@on_loop
async def test_nothing_is_stable_above_the_high_watermark(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p")
    put(log)
    put(log)
    send(log, 7)
    assert log.last_stable(1) == 1


@on_loop
async def test_an_aborted_transaction_is_told_to_whoever_reads_any_of_it(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p")
    put(log)
    send(log, 7)
    put(log)
    send(log, 8)
    assert (mark(log, 7), mark(log, 8)) == (4, 5)
    put(log)
    assert await aborted(log, 0, 1) == []
    assert await aborted(log, 0, 2) == await aborted(log, 2, 3) == [(7, 1, 4)]
    assert await aborted(log, 4, 5) == [(7, 1, 4), (8, 3, 5)]
    assert await aborted(log, 5, 6) == [(8, 3, 5)]
    assert await aborted(log, 6, 7) == []


@on_loop
async def test_a_marker_in_a_later_segment_is_found(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p", settings=topic(segment_bytes=200))
    send(log, 7)
    send(log, 8)
    for _ in range(6):
        put(log)
    mark(log, 8)
    mark(log, 7)
    assert len(log.segments) > 3
    assert await aborted(log, 0, 1) == [(7, 0, 9)]  # it looks past the other, which did not end the last one before 1
    assert await aborted(log, 0, 2) == [(8, 1, 8), (7, 0, 9)]


@on_loop
async def test_truncation_takes_the_aborted_back_and_opens_what_they_ended(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p", settings=topic(segment_bytes=200))
    send(log, 7)
    first = mark(log, 7)
    send(log, 7)
    second = mark(log, 7)
    await log.checkpoint()
    await log.truncate_to(second)
    assert log.producers.transactions.open == {7: first + 1}
    mark(log, 7, commits=True)
    assert await aborted(log) == [(7, 0, first)]
    await log.truncate_to(0)
    for _ in range(6):
        put(log)
    assert await aborted(log) == []
    assert log.last_stable(log.end) == log.end


@on_loop
async def test_a_cut_index_is_cut_on_disk_too(tmp_path: Path) -> None:
    """The file still has the entry when the power goes; the recovery point lies below it."""
    log = await open_log(tmp_path / "p")
    put(log)
    point = await log.checkpoint()
    send(log, 7)
    marker = mark(log, 7)
    await log.checkpoint()
    assert "00000000000000000000.txnindex" in names(tmp_path / "p")
    await log.truncate_to(marker)
    mark(log, 7, commits=True)
    for _ in range(3):
        put(log)
    log = await open_log(tmp_path / "p", recovery=point)
    assert await aborted(log) == []


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
async def test_a_log_that_is_opened_again_knows_it_all(tmp_path: Path, clean: bool) -> None:
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
async def test_an_unreadable_index_is_made_again_from_the_batches(tmp_path: Path) -> None:
    """Also when the transaction began in an earlier segment."""
    log = await open_log(tmp_path / "p", settings=topic(segment_bytes=200))
    send(log, 7)
    for _ in range(4):
        put(log)
    marker = mark(log, 7)
    for _ in range(4):
        put(log)
    point = await log.close()
    spoiled = next((tmp_path / "p").glob("*.txnindex"))
    good = spoiled.read_bytes()
    spoiled.write_bytes(bytes([good[0] ^ 1]) + good[1:])
    log = await open_log(tmp_path / "p", settings=topic(segment_bytes=200), recovery=point, clean=True)
    assert log.aborted_between(0, log.end) is None
    assert await aborted(log) == [(7, 0, marker)]
    await log.close()
    assert spoiled.read_bytes() == good


@on_loop
async def test_retention_takes_the_index_of_a_segment_with_it(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p", settings=topic(segment_bytes=200, retention_ms=1))
    send(log, 7)
    mark(log, 7)
    for _ in range(4):
        put(log)
    await log.checkpoint()
    assert any(name.endswith(".txnindex") for name in names(tmp_path / "p"))
    await log.retain(NOW + 1000, log.end)
    assert not any(name.endswith(".txnindex") for name in names(tmp_path / "p"))
    assert await aborted(log, log.start) == []


@on_loop
async def test_a_segment_that_comes_back_has_its_index(tmp_path: Path) -> None:
    """The power may go before it is on the disk that the segment is gone; nobody would look for what was aborted."""
    disk, ports = trouble()
    settings = topic(segment_bytes=200, retention_ms=1)
    log = await open_log(tmp_path / "p", settings=settings, ports=ports)
    send(log, 7)
    mark(log, 7)
    for _ in range(2):
        put(log)
    point = await log.checkpoint()
    before = image_of(tmp_path / "p")
    disk.hold = True
    retaining = asyncio.ensure_future(log.retain(NOW + 1000, log.end))
    while segment_path(tmp_path / "p").exists():  # it syncs other things before
        await disk.release()
    left = image_of(tmp_path / "p")
    retaining.cancel()
    restore(tmp_path / "p", before | left)  # names that were removed, and not synced
    for name in before:
        if name.endswith(".txnindex") and name not in left:
            (tmp_path / "p" / name).unlink()
    log = await open_log(tmp_path / "p", settings=settings, recovery=point)
    assert (log.start, await aborted(log)) == (0, [(7, 0, 1)])


@on_loop
async def test_an_index_whose_segment_is_gone_means_nothing(tmp_path: Path) -> None:
    settings = topic(segment_bytes=200, retention_ms=1)
    log = await open_log(tmp_path / "p", settings=settings)
    send(log, 7)
    mark(log, 7)
    for _ in range(4):
        put(log)
    await log.checkpoint()
    (left,) = (tmp_path / "p").glob("*.txnindex")
    data = left.read_bytes()
    await log.retain(NOW + 1000, log.end - 1)
    point = await log.close()
    left.write_bytes(data)  # its removal was not on the disk
    log = await open_log(tmp_path / "p", settings=settings, recovery=point, clean=True)
    assert log.start > 1
    assert await aborted(log, log.start) == []


@on_loop
async def test_a_follower_learns_what_its_leader_knows(tmp_path: Path) -> None:
    leader, follower = await open_log(tmp_path / "l"), await open_log(tmp_path / "f")
    send(leader, 7)
    mark(leader, 7)
    send(leader, 8)
    data = bytearray(segment_path(tmp_path / "l").read_bytes())
    follower.append_as_is(memoryview(data), NOW)
    assert follower.producers.dump() == leader.producers.dump()
    assert (follower.last_stable(3), await aborted(follower)) == (2, [(7, 0, 1)])


@on_loop
async def test_a_log_that_begins_anew_waits_for_no_marker(tmp_path: Path) -> None:
    """Those went with the records that its leader has no more."""
    log = await open_log(tmp_path / "p")
    send(log, 7)
    await log.truncate_fully_and_start_at(100)
    assert log.last_stable(100) == 100


@on_loop
async def test_a_marker_that_raises_the_epoch_resets_sequences_and_fences(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p")
    send(log, 7)
    mark(log, 7, epoch=1, commits=True)
    with pytest.raises(StaleProducerEpoch):
        send(log, 7, epoch=0, sequence=1)
    with pytest.raises(OutOfOrderSequence):
        send(log, 7, epoch=1, sequence=1)
    send(log, 7, epoch=1, sequence=0)


@on_loop
async def test_a_marker_in_the_same_epoch_keeps_sequences(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p")
    send(log, 7)
    mark(log, 7, commits=True)
    with pytest.raises(OutOfOrderSequence):
        send(log, 7, sequence=2)
    send(log, 7, sequence=1)


@on_loop
async def test_who_has_a_transaction_open_sends_nothing_outside_it(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p")
    send(log, 7)
    with pytest.raises(InvalidTransactionState):
        put(log, one_batch(producer=(7, 0, 1)))
    put(log, one_batch(producer=(8, 0, 0)))
    mark(log, 7)
    put(log, one_batch(producer=(7, 0, 1)))


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


def test_snapshots_hold_what_is_open_and_what_has_just_ended() -> None:
    states = ProducerStates(DAY_MS)
    states.transactions.begin(8, 30)
    states.transactions.begin(7, 40)
    states.transactions.end(8, 57)
    again = ProducerStates.load(states.dump(), DAY_MS)
    assert again.dump() == states.dump()
    assert [again.transactions.last_stable(high) for high in (20, 57, 58)] == [20, 30, 40]
    assert again.transactions.end(7, 60) == 40
    assert again.transactions.last_stable(60) == 40
