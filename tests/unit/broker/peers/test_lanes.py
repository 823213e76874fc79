"""Lanes in a simulated network: they come up, carry what they are for, and come back after whatever happens to them."""

import asyncio

import pytest

from tailrace.broker.peers import LaneKind, peers
from tailrace.broker.peers.lane import rest_max_s
from tailrace.broker.peers.outgoing import connect_max_s
from tailrace.model.ids import BrokerId
from tailrace.model.limits import raft_messages_per_frame_max
from tailrace.testing.simulation import World
from tests.unit.broker.peers.stage import (
    Talker,
    fetch_frame,
    in_world,
    key,
    meeting,
    peer_port,
    vote_request,
)


def test_all_who_know_each_other_are_connected() -> None:
    async def scenario(world: World) -> None:
        talkers = await meeting(world, 3)
        assert [one.peers.live for one in talkers] == [(2, 3), (1, 3), (1, 2)]
        assert sorted(talkers[0].lanes) == [("up", 2, "control"), ("up", 3, "control")]
        assert world.network.open_connections == 6
        await talkers[0].do(lambda peers: peers.know(BrokerId(1), "b1", peer_port))
        assert talkers[0].peers.live == (2, 3)

    in_world(scenario)


def test_what_is_said_in_one_turn_goes_in_one_frame() -> None:
    async def scenario(world: World) -> None:
        one, two, three = await meeting(world, 3)

        def speak(peers: peers.Peers) -> None:
            for epoch in range(5):
                for to in (2, 3):
                    peers.send(BrokerId(to), key(epoch), vote_request(one.me, to, epoch))

        await one.do(speak)
        await one.do(speak)
        await world.until(lambda: len(two.frames) == len(three.frames) == 2)
        for to, heard in ((2, two), (3, three)):
            assert heard.frames[0] == [(1, key(epoch), vote_request(one.me, to, epoch)) for epoch in range(5)]

    in_world(scenario)


def test_what_is_too_much_for_a_frame_goes_in_several_and_too_much_for_a_turn_is_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    count = 2 * raft_messages_per_frame_max + 500
    monkeypatch.setattr(peers, "raft_messages_gathered_max", count)

    async def scenario(world: World) -> None:
        one, two = await meeting(world)

        def speak(peers: peers.Peers) -> None:
            for epoch in range(count + 7):
                peers.send(BrokerId(2), key(1), vote_request(one.me, 2, epoch))

        await one.do(speak)
        await world.until(lambda: len(two.epochs) >= count)
        await asyncio.sleep(1)
        assert two.epochs == list(range(count))
        assert [len(frame) for frame in two.frames] == [raft_messages_per_frame_max] * 2 + [500]

    in_world(scenario)


async def say(one: Talker, epoch: int, to: int = 2) -> None:
    await one.do(lambda peers: peers.send(BrokerId(to), key(1), vote_request(one.me, to, epoch)))


def test_a_reset_is_told_at_once_and_the_lane_comes_back() -> None:
    async def scenario(world: World) -> None:
        one, two = await meeting(world)
        assert world.network.reset("b1", "b2") == 2
        await world.until(lambda: one.lanes[-1] == ("down", 2, "control"), within_seconds=0.01)
        await say(one, 1)  # into the void
        await world.until(lambda: one.lanes[-1] == ("up", 2, "control"), within_seconds=1)
        await say(one, 2)
        await world.until(lambda: bool(two.epochs))
        assert two.epochs == [2]

    in_world(scenario)


def test_lanes_survive_a_partition() -> None:
    async def scenario(world: World) -> None:
        talkers = await meeting(world, 3)
        world.network.isolate("b1")
        for one, to in ((0, 2), (0, 3), (1, 1), (2, 1)):
            await say(talkers[one], 1, to)  # silence shows when something is sent
        await world.until(lambda: [one.peers.live for one in talkers] == [(), (3,), (2,)], within_seconds=60)
        world.network.heal()
        await world.until(lambda: all(len(one.peers.live) == 2 for one in talkers), within_seconds=5)

    in_world(scenario)


@pytest.mark.parametrize("power_loss", [False, True])
def test_a_broker_that_restarts_is_connected_soon(power_loss: bool) -> None:
    async def scenario(world: World) -> None:
        one, two = await meeting(world)
        two.machine.crash(power_loss=power_loss)
        await asyncio.sleep(20)
        await two.boot()
        await two.meet(one)
        await world.until(lambda: two.peers.live == (1,), within_seconds=5)
        async with asyncio.timeout(5):
            while not two.epochs:  # what goes to a machine that was down is what shows that it was
                await say(one, 5)
                await asyncio.sleep(0.5)

    in_world(scenario)


def test_who_hears_from_a_broker_need_not_wait_to_try_again() -> None:
    async def scenario(world: World) -> None:
        one, two = Talker(world, 1), Talker(world, 2)
        await one.boot()
        await one.meet(two)
        await asyncio.sleep(7.3)
        await two.boot()
        await two.meet(one)
        await world.until(lambda: two.peers.live == (1,), within_seconds=1)
        await world.until(lambda: one.peers.live == (2,), within_seconds=0.05)

    for seed in range(5):
        in_world(scenario, seed)


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
        one, two = Talker(world, 1), Talker(world, 2)
        await one.boot()
        await two.boot()
        world.network.cut("b1", "b2")
        await one.meet(two)
        await asyncio.sleep(0.5)
        await one.do(lambda peers: peers.forget(BrokerId(2)))
        world.network.heal()
        await asyncio.sleep(10)
        assert one.lanes == []
        assert world.network.open_connections == 0

    in_world(scenario)


def test_a_broker_that_accepts_and_says_nothing_is_tried_again() -> None:
    async def scenario(world: World) -> None:
        one, two = Talker(world, 1), Talker(world, 2)
        await one.boot()
        await two.boot()
        two.machine.pause()
        await one.meet(two)
        await asyncio.sleep(60)
        tries = sum(line.split()[2] == "connect" for line in world.lines)
        assert tries > 60 / (connect_max_s + rest_max_s) - 1
        two.machine.resume()
        await world.until(lambda: one.peers.live == (2,), within_seconds=connect_max_s + rest_max_s)
        await world.until(lambda: world.network.open_connections == 1, within_seconds=1)

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
        one, two = Talker(world, 1), Talker(world, 2)
        await one.boot()
        await two.boot()
        lane = await one.do(lambda peers: peers.lane(BrokerId(2), LaneKind.FETCH))
        await asyncio.sleep(5)
        assert not lane.up
        await one.meet(two)
        await world.until(lambda: lane.up, within_seconds=1)

    in_world(scenario)


def test_closing_sends_what_was_gathered() -> None:
    async def scenario(world: World) -> None:
        one, two = await meeting(world)

        async def speak_and_go() -> None:
            for epoch in range(1000):
                one.peers.send(BrokerId(2), key(epoch), vote_request(one.me, 2, epoch))
            await one.peers.close()

        await one.run(speak_and_go())
        await world.until(lambda: two.lanes[-1] == ("down", 1, "control"))
        assert two.epochs == list(range(1000))
        assert one.lanes == [("up", 2, "control")]

    in_world(scenario)
