"""The bounds on what a peer can make the broker hold: connections, calls, unread answers, announced bytes."""

import asyncio
import tracemalloc

import pytest

from tailrace.broker.peers import LaneKind, accepted, acceptor
from tailrace.broker.peers.framing import request_frame
from tailrace.broker.peers.lane_kind import KEPT_LANES
from tailrace.model.ids import NO_ID
from tailrace.wire.framing import LENGTH_LAYOUT
from tailrace.wire.messages.peers.leave_cluster import LeaveCluster
from tests.unit.broker.peers.listening import Listening, hello, listening, raft_frame, with_listener
from tests.unit.broker.peers.stage import fetch_frame, voter
from tests.unit.doors.kafka.hostile import until


@with_listener
async def test_what_is_claimed_and_does_not_come_takes_no_memory(one: Listening) -> None:
    raws = [await one.greeted(broker) for broker in range(2, 12)]
    tracemalloc.start()
    for raw in raws:
        raw.send(LENGTH_LAYOUT.pack(90 * 1024 * 1024) + b"x" * 1000)
    await one.is_well()
    assert tracemalloc.get_traced_memory()[1] < 10 * 1024 * 1024
    tracemalloc.stop()


def test_who_does_not_read_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accepted, "PEER_FETCH_UNSENT_MAX_BYTES", 8 * 1024 * 1024)

    async def scenario() -> None:
        async with listening() as one:
            raw = await one.greeted(2, LaneKind.FETCH)
            raw.writer.transport.pause_reading()  # type: ignore[attr-defined]
            while not one.notes.lost:
                raw.send(fetch_frame(bytes(1_000_000)))
                await asyncio.sleep(0)
            assert "the peer does not read" in one.logged[0]
            assert one.notes.lost == [(2, LaneKind.FETCH)]
            raw.close()
            await one.is_well()

    asyncio.run(asyncio.wait_for(scenario(), 30))


def test_calls_that_are_never_answered_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accepted, "PEER_CALLS_UNDER_WAY_MAX", 10)

    async def scenario() -> None:
        async with listening() as one:
            raw = await one.greeted()
            leave = bytes(request_frame(LeaveCluster(broker_id=2, incarnation_id=NO_ID), 0, 1))
            raw.send(leave * 11)
            assert await raw.closed()
            assert len(one.notes.callers) <= 10
            assert "10 are still unanswered" in one.logged[0]

    asyncio.run(scenario())


def test_there_are_so_many_connections_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acceptor, "PEER_CONNECTIONS_MAX", 3)

    async def scenario() -> None:
        async with listening() as one:
            raws = [await one.greeted(broker) for broker in (2, 3, 4)]
            raw = await one.say(bytes(request_frame(hello(5), 0, 1)))
            assert await raw.closed()
            assert "too many peer connections: there are 3 already" in one.logged[0]
            raws[0].send(raft_frame(voter(2)))
            await until(lambda: bool(one.notes.frames))
            raws[0].close()
            await until_served(one)

    asyncio.run(scenario())


async def until_served(one: Listening) -> None:
    """Until there is room for one more."""
    async with asyncio.timeout(10):
        while True:
            raw = await one.say(bytes(request_frame(hello(6), 0, 1)))
            try:
                await raw.answer()
                return
            except (asyncio.IncompleteReadError, ConnectionError):
                raw.close()


@with_listener
async def test_a_newer_connection_of_a_lane_takes_the_place_of_the_older(one: Listening) -> None:
    older = [await one.greeted(2, lane) for lane in KEPT_LANES]
    newer = await one.greeted(2, LaneKind.FETCH)
    assert await older[LaneKind.FETCH].closed()
    await until(lambda: one.notes.lost == [(2, LaneKind.FETCH)])
    for raw in (newer, older[LaneKind.CATCH_UP]):
        raw.send(fetch_frame(b"still here"))
        assert (await raw.answer()).endswith(b"still here")
    newer.close()
    await until(lambda: one.notes.lost == [(2, LaneKind.FETCH)] * 2)
    assert one.logged == []
