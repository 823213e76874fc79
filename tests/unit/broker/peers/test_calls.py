"""Calls: questions and answers between brokers, in any order, and an end to every wait."""

import asyncio
from typing import Any

import pytest

from tailrace.broker.peers import LaneKind, Refused, Unreachable, call_once
from tailrace.broker.peers.outgoing import silence_max_s
from tailrace.model.ids import NO_ID, BrokerId, Id
from tailrace.model.limits import peer_calls_under_way_max
from tailrace.testing.simulation import World
from tailrace.testing.simulation.failures import SimulationFailed
from tailrace.wire.errors import Error
from tailrace.wire.messages.peers.forward import Forward, ForwardAnswer
from tailrace.wire.messages.peers.hello import PeerHello
from tailrace.wire.messages.peers.join_cluster import JoinCluster, JoinClusterAnswer
from tailrace.wire.messages.peers.leave_cluster import LeaveCluster, LeaveClusterAnswer
from tailrace.wire.messages.peers.move_start import MoveStart
from tailrace.wire.messages.peers.take_producer_ids import TakeProducerIds
from tests.unit.broker.peers.stage import Talker, in_world, meeting, peer_port

slow = LeaveCluster(broker_id=1, incarnation_id=NO_ID)  # answered when `may_leave` is set
joining = JoinCluster(directory_id=Id(b"d" * 16), incarnation_id=Id(b"i" * 16), peer_host="b9", peer_port=1)
joiner = PeerHello(cluster_id="", broker_id=-1, directory_id=Id(b"d" * 16))


def forward(number: int) -> Forward:
    return Forward(api_key=3, api_version=9, body=b"%d" % number * 10_000)


def call(one: Talker, request: object, timeout_s: float = 10.0) -> "asyncio.Future[Any]":
    return one.run(one.peers.call(BrokerId(2), request, timeout_s))


def test_calls_are_answered_and_a_slow_one_holds_up_nobody() -> None:
    async def scenario(world: World) -> None:
        one, two = await meeting(world)
        leaving = call(one, slow)
        answers = [call(one, forward(number)) for number in range(50)]
        assert await asyncio.gather(*answers) == [ForwardAnswer(body=forward(number).body) for number in range(50)]
        assert not leaving.done()
        two.may_leave.set()
        assert await leaving == LeaveClusterAnswer()
        assert two.callers == [1] * 51

    in_world(scenario)


def test_a_fault_is_an_answer() -> None:
    async def scenario(world: World) -> None:
        one, _ = await meeting(world)
        answer = await call(one, TakeProducerIds(broker_id=1))
        assert (answer.error_code, answer.error_message, answer.controller) == (41, "ask broker 3", 3)

    in_world(scenario)


def test_a_bug_is_an_answer_too_and_is_loud() -> None:
    async def scenario(world: World) -> None:
        one, _ = await meeting(world)
        said: list[str] = []
        world.loop.set_exception_handler(lambda loop, context: said.append(context["message"]))
        answer = await call(one, MoveStart(topic_id=NO_ID, partition=0, start=1))
        assert (answer.error_code, answer.error_message) == (-1, "MoveStart failed here")
        assert said == ["MoveStart of broker 1 failed"]
        world.loop.set_exception_handler(None)
        await call(one, MoveStart(topic_id=NO_ID, partition=0, start=1))

    with pytest.raises(SimulationFailed, match="MoveStart of broker 1 failed"):
        in_world(scenario)


def test_who_is_not_connected_cannot_be_called() -> None:
    async def scenario(world: World) -> None:
        one = Talker(world, 1)
        await one.boot()
        with pytest.raises(Unreachable, match="nobody knows where broker 2 is"):
            await call(one, slow)
        await one.do(lambda peers: peers.know(BrokerId(2), "b1", 1))
        with pytest.raises(Unreachable, match="broker 2 is not connected"):
            await call(one, slow)

    in_world(scenario)


def test_calls_end_with_their_lane() -> None:
    async def scenario(world: World) -> None:
        one, two = await meeting(world)
        calls = [call(one, slow) for _ in range(3)]
        await world.until(lambda: len(two.callers) == 3)
        world.network.reset("b1", "b2")
        for one_call in calls:
            with pytest.raises(Unreachable, match="no answer: connection reset"):
                await one_call
        await world.until(lambda: one.peers.live == (2,))
        leaving = call(one, slow)
        await world.until(lambda: len(two.callers) == 4)
        await one.do(lambda peers: peers.forget(BrokerId(2)))
        with pytest.raises(Unreachable, match="the lane was closed"):
            await leaving

    in_world(scenario)


def test_a_late_answer_is_dropped_and_the_lane_lives_on() -> None:
    async def scenario(world: World) -> None:
        one, two = await meeting(world)
        with pytest.raises(Unreachable, match="broker 2 did not answer within 1 s"):
            await call(one, slow, timeout_s=1)
        two.may_leave.set()
        assert await call(one, forward(1)) == ForwardAnswer(body=forward(1).body)
        assert one.lanes == [("up", 2, "control")]

    in_world(scenario)


def test_a_lane_is_opened_anew_when_nothing_is_answered_for_long() -> None:
    async def scenario(world: World) -> None:
        one, two = await meeting(world)
        two.machine.pause()
        for _ in range(int(silence_max_s)):
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
        leaving = call(one, slow, timeout_s=3 * silence_max_s)
        for _ in range(4):
            await asyncio.sleep(0.7 * silence_max_s)
            await call(one, forward(1))
        with pytest.raises(Unreachable):
            await leaving
        assert one.lanes == [("up", 2, "control")]

    in_world(scenario)


def test_calls_under_way_are_bounded() -> None:
    async def scenario(world: World) -> None:
        one, two = await meeting(world)
        calls = [call(one, slow) for _ in range(peer_calls_under_way_max)]
        await world.until(lambda: len(two.callers) == peer_calls_under_way_max)
        with pytest.raises(Unreachable, match="1000 calls to it are under way"):
            await call(one, slow)
        two.may_leave.set()
        await asyncio.gather(*calls)
        assert await call(one, slow) == LeaveClusterAnswer()

    in_world(scenario)


def test_a_joiner_asks_once() -> None:
    async def scenario(world: World) -> None:
        (one,) = await meeting(world, 1)
        stranger = world.machine("stranger")
        net = stranger.boot().net
        answer = await stranger.run(call_once(net, "b1", peer_port, joiner, joining, 5.0))
        assert answer == JoinClusterAnswer(broker_id=7, cluster_id="the-cluster")
        assert one.callers == [-1]
        await world.until(lambda: world.network.open_connections == 0)

    in_world(scenario)


def test_a_joiner_is_told_why_not() -> None:
    async def scenario(world: World) -> None:
        (one,) = await meeting(world, 1)
        stranger = world.machine("stranger")
        net = stranger.boot().net

        async def ask(port: int, hello: PeerHello, request: object = joining) -> None:
            await stranger.run(call_once(net, "b1", port, hello, request, 2.0))

        other = PeerHello(cluster_id="another", broker_id=9, directory_id=NO_ID)
        with pytest.raises(Refused, match="INCONSISTENT_CLUSTER_ID: this is cluster the-cluster, not another") as told:
            await ask(peer_port, other)
        assert told.value.error is Error.INCONSISTENT_CLUSTER_ID
        with pytest.raises(Unreachable, match="refused"):
            await ask(1, joiner)
        with pytest.raises(Unreachable):
            await ask(peer_port, joiner, forward(1))  # it may only ask to join
        one.machine.pause()
        with pytest.raises(Unreachable, match="did not answer within"):
            await ask(peer_port, joiner)
        assert one.callers == []

    in_world(scenario)


def test_a_broker_calls_and_connects_to_others_only() -> None:
    async def scenario(world: World) -> None:
        one, _ = await meeting(world)
        with pytest.raises(AssertionError, match="does not connect to itself"):
            await one.do(lambda peers: peers.lane(BrokerId(1), LaneKind.FETCH))

    in_world(scenario)
