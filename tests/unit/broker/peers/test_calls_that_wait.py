"""Calls that get no answer: every call times out, and a lane on which no call is answered reconnects."""

import asyncio

import pytest

from tailrace.broker.peers import Unreachable
from tailrace.broker.peers.outgoing import SILENCE_MAX_S
from tailrace.model.ids import BrokerId
from tailrace.model.limits import PEER_CALLS_UNDER_WAY_MAX
from tailrace.testing.simulation import World
from tailrace.wire.messages.peers.forward import ForwardAnswer
from tailrace.wire.messages.peers.leave_cluster import LeaveClusterAnswer
from tests.unit.broker.peers.stage import SLOW, call, forward, in_world, meeting


def test_calls_end_with_their_lane() -> None:
    async def scenario(world: World) -> None:
        one, two = await meeting(world)
        calls = [call(one, SLOW) for _ in range(3)]
        await world.until(lambda: len(two.callers) == 3)
        world.network.reset("b1", "b2")
        for one_call in calls:
            with pytest.raises(Unreachable, match="no answer: connection reset"):
                await one_call
        await world.until(lambda: one.peers.live == (2,))
        leaving = call(one, SLOW)
        await world.until(lambda: len(two.callers) == 4)
        await one.do(lambda peers: peers.forget(BrokerId(2)))
        with pytest.raises(Unreachable, match="the lane was closed"):
            await leaving

    in_world(scenario)


def test_a_late_answer_is_dropped_and_the_lane_lives_on() -> None:
    async def scenario(world: World) -> None:
        one, two = await meeting(world)
        with pytest.raises(Unreachable, match="broker 2 did not answer within 1 s"):
            await call(one, SLOW, timeout_s=1)
        two.may_leave.set()
        assert await call(one, forward(1)) == ForwardAnswer(body=forward(1).body)
        assert one.lanes == [("up", 2, "control")]

    in_world(scenario)


def test_a_lane_is_opened_anew_when_nothing_is_answered_for_long() -> None:
    async def scenario(world: World) -> None:
        one, two = await meeting(world)
        two.machine.pause()
        for _ in range(int(SILENCE_MAX_S)):
            with pytest.raises(Unreachable):
                await call(one, forward(1), timeout_s=1.1)
        await world.until(lambda: one.lanes[-1] == ("down", 2, "control"), within_seconds=1)
        two.machine.resume()
        await world.until(lambda: one.lanes[-1] == ("up", 2, "control"), within_seconds=5)
        assert await call(one, forward(1)) == ForwardAnswer(body=forward(1).body)

    in_world(scenario)


def test_a_lane_on_which_other_calls_are_answered_is_kept() -> None:
    async def scenario(world: World) -> None:
        one, _ = await meeting(world)
        leaving = call(one, SLOW, timeout_s=3 * SILENCE_MAX_S)
        for _ in range(4):
            await asyncio.sleep(0.7 * SILENCE_MAX_S)
            await call(one, forward(1))
        with pytest.raises(Unreachable):
            await leaving
        assert one.lanes == [("up", 2, "control")]

    in_world(scenario)


def test_calls_under_way_are_bounded() -> None:
    async def scenario(world: World) -> None:
        one, two = await meeting(world)
        calls = [call(one, SLOW) for _ in range(PEER_CALLS_UNDER_WAY_MAX)]
        await world.until(lambda: len(two.callers) == PEER_CALLS_UNDER_WAY_MAX)
        with pytest.raises(Unreachable, match="1000 calls to it are under way"):
            await call(one, SLOW)
        two.may_leave.set()
        await asyncio.gather(*calls)
        assert await call(one, SLOW) == LeaveClusterAnswer()

    in_world(scenario)
