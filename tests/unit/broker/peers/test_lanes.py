"""Lanes to brokers that are known, that move and that are forgotten, and what each lane is for."""

import asyncio

from tailrace.broker.peers import LaneKind
from tailrace.model.ids import BrokerId
from tailrace.testing.simulation import World
from tests.unit.broker.peers.stage import (
    PEER_PORT,
    fetch_frame,
    in_world,
    meeting,
    strangers,
)


def test_all_who_know_each_other_are_connected() -> None:
    async def scenario(world: World) -> None:
        talkers = await meeting(world, 3)
        assert [one.peers.live for one in talkers] == [(2, 3), (1, 3), (1, 2)]
        assert sorted(talkers[0].lanes) == [("up", 2, "control"), ("up", 3, "control")]
        assert world.network.open_connections == 6
        await talkers[0].do(lambda peers: peers.know(BrokerId(1), "b1", PEER_PORT))
        assert talkers[0].peers.live == (2, 3)

    in_world(scenario)


def test_lanes_follow_a_broker_that_moves() -> None:
    async def scenario(world: World) -> None:
        one, two = await meeting(world)
        await one.do(lambda peers: peers.lane(BrokerId(2), LaneKind.FETCH))
        await world.until(lambda: ("up", 2, "fetch") in one.lanes)
        port = await two.run(two.peers.listen("0.0.0.0", 0))
        one.lanes.clear()
        await one.do(lambda peers: peers.know(BrokerId(2), "b2", port))
        await world.until(lambda: len(one.lanes) == 4)
        assert sorted(one.lanes[:2]) == [("down", 2, "control"), ("down", 2, "fetch")]
        assert sorted(one.lanes[2:]) == [("up", 2, "control"), ("up", 2, "fetch")]

    in_world(scenario)


def test_a_forgotten_broker_is_left_alone() -> None:
    async def scenario(world: World) -> None:
        one, two = await meeting(world)
        await one.do(lambda peers: peers.forget(BrokerId(2)))
        await two.do(lambda peers: peers.forget(BrokerId(1)))
        await world.until(lambda: world.network.open_connections == 0)
        await asyncio.sleep(10)
        assert world.network.open_connections == 0
        assert one.lanes == [("up", 2, "control")]  # nobody is told of what it did itself
        assert one.peers.live == ()

    in_world(scenario)


def test_a_broker_that_is_forgotten_while_it_is_being_connected_is_left_alone() -> None:
    async def scenario(world: World) -> None:
        one, two = await strangers(world)
        world.network.cut("b1", "b2")
        await one.meet(two)
        await asyncio.sleep(0.5)
        await one.do(lambda peers: peers.forget(BrokerId(2)))
        world.network.heal()
        await asyncio.sleep(10)
        assert one.lanes == []
        assert world.network.open_connections == 0

    in_world(scenario)


def test_fetches_go_out_and_answers_come_back_on_lanes_of_their_own() -> None:
    async def scenario(world: World) -> None:
        one, two = await meeting(world)
        for number, kind in enumerate((LaneKind.FETCH, LaneKind.CATCH_UP), 1):
            lane = await one.do(lambda peers, kind=kind: peers.lane(BrokerId(2), kind))  # type: ignore[misc]
            assert await one.do(lambda peers, kind=kind: peers.lane(BrokerId(2), kind)) is lane  # type: ignore[misc]
            lane.send([fetch_frame(b"too early")])
            await world.until(lambda lane=lane: lane.up)  # type: ignore[misc]
            body = bytes([number]) * 300_000
            lane.send([fetch_frame(body, number)])
            await world.until(lambda number=number: len(one.fetched_frames) == number)  # type: ignore[misc]
            assert two.fetches[-1] == (kind, body)
            assert one.fetched_frames[-1] == number.to_bytes(4, "big") + b"\0" + body
        assert len(two.fetches) == 2
        await one.do(lambda peers: peers.drop_lane(BrokerId(2), LaneKind.FETCH))
        await world.until(lambda: two.lost == [(1, LaneKind.FETCH)])
        world.network.reset("b1", "b2")
        await world.until(lambda: two.lost[1:] == [(1, LaneKind.CATCH_UP)])
        await world.until(lambda: one.lanes[-1] == ("up", 2, "catch-up") or one.lanes[-2] == ("up", 2, "catch-up"))

    in_world(scenario)


def test_a_lane_to_a_broker_that_nobody_knows_yet_waits() -> None:
    async def scenario(world: World) -> None:
        one, two = await strangers(world)
        lane = await one.do(lambda peers: peers.lane(BrokerId(2), LaneKind.FETCH))
        await asyncio.sleep(5)
        assert not lane.up
        await one.meet(two)
        await world.until(lambda: lane.up, within_seconds=1)

    in_world(scenario)
