"""Calls: questions and answers between brokers, in any order; faults are answers."""

import asyncio

import pytest

from tailrace.broker.peers import LaneKind, Unreachable
from tailrace.model.ids import NO_ID, BrokerId
from tailrace.testing.simulation import World
from tailrace.testing.simulation.failures import SimulationFailed
from tailrace.wire.messages.peers.forward import ForwardAnswer
from tailrace.wire.messages.peers.hand_over import HandOver
from tailrace.wire.messages.peers.leave_cluster import LeaveClusterAnswer
from tailrace.wire.messages.peers.move_start import MoveStart
from tailrace.wire.messages.peers.take_producer_ids import TakeProducerIds
from tests.unit.broker.peers.stage import SLOW, Talker, call, forward, in_world, meeting


def test_calls_are_answered_and_a_slow_one_holds_up_nobody() -> None:
    async def scenario(world: World) -> None:
        one, two = await meeting(world)
        leaving = call(one, SLOW)
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
        assert said == ["bug while serving MoveStart of broker 1"]
        world.loop.set_exception_handler(None)
        await call(one, MoveStart(topic_id=NO_ID, partition=0, start=1))

    with pytest.raises(SimulationFailed, match="bug while serving MoveStart of broker 1"):
        in_world(scenario)


def test_an_answer_to_something_else_is_a_bug() -> None:
    async def scenario(world: World) -> None:
        one, _ = await meeting(world)
        said: list[str] = []
        world.loop.set_exception_handler(lambda loop, context: said.append(str(context["exception"])))
        answer = await call(one, HandOver(partitions=()))
        world.loop.set_exception_handler(None)
        assert (answer.error_code, answer.error_message) == (-1, "HandOver failed here")
        assert "does not answer HandOver" in said[0]

    in_world(scenario)


def test_who_is_not_connected_cannot_be_called() -> None:
    async def scenario(world: World) -> None:
        one = Talker(world, 1)
        await one.boot()
        with pytest.raises(Unreachable, match="nobody knows where broker 2 is"):
            await call(one, SLOW)
        await one.do(lambda peers: peers.know(BrokerId(2), "b1", 1))
        with pytest.raises(Unreachable, match="broker 2 is not connected"):
            await call(one, SLOW)

    in_world(scenario)


def test_a_broker_calls_and_connects_to_others_only() -> None:
    async def scenario(world: World) -> None:
        one, _ = await meeting(world)
        with pytest.raises(AssertionError, match="does not connect to itself"):
            await one.do(lambda peers: peers.lane(BrokerId(1), LaneKind.FETCH))

    in_world(scenario)
