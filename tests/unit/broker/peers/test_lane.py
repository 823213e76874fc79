"""Lanes come back: after a reset, a partition, a restart, and from a peer that accepts and says nothing."""

import asyncio

import pytest

from tailrace.broker.peers.lane import BACKOFF_MAX_S
from tailrace.broker.peers.outgoing import CONNECT_MAX_S
from tailrace.model.ids import BrokerId
from tailrace.testing.simulation import World
from tests.unit.broker.peers.stage import (
    Talker,
    in_world,
    key,
    meeting,
    vote_request,
)


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


def test_a_broker_that_accepts_and_says_nothing_is_tried_again() -> None:
    async def scenario(world: World) -> None:
        one, two = Talker(world, 1), Talker(world, 2)
        await one.boot()
        await two.boot()
        two.machine.pause()
        await one.meet(two)
        await asyncio.sleep(60)
        tries = sum(line.split()[2] == "connect" for line in world.lines)
        assert tries > 60 / (CONNECT_MAX_S + BACKOFF_MAX_S) - 1
        two.machine.resume()
        await world.until(lambda: one.peers.live == (2,), within_seconds=CONNECT_MAX_S + BACKOFF_MAX_S)
        await world.until(lambda: world.network.open_connections == 1, within_seconds=1)

    in_world(scenario)
