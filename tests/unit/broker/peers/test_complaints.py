"""Lanes reconnect every second; the log says so once."""

import asyncio
import logging

import pytest

from tailrace.broker.peers import LaneKind
from tailrace.broker.peers.complaints import KEPT_MAX, REPEATED_AFTER_S, Complaints
from tailrace.model.ids import BrokerId
from tailrace.testing.simulation import World
from tests.unit.broker.peers.stage import Talker, in_world, meeting
from tests.unit.doors.kafka.hostile import heard
from tests.unit.standing_clock import StandingClock


def connects(world: World) -> int:
    return sum(line.split()[2] == "connect" for line in world.lines)


def test_a_refused_lane_tries_on_and_both_sides_say_so_once() -> None:
    async def scenario(world: World) -> None:
        one, two = Talker(world, 1), Talker(world, 2, "another")
        for talker in (one, two):
            await talker.boot()
        with heard() as lines:
            await two.meet(one)
            await asyncio.sleep(60)
            assert [line.partition(": ")[2] for line in lines] == [
                "INCONSISTENT_CLUSTER_ID: this is cluster the-cluster, not another",
                "the control lane to broker 1: INCONSISTENT_CLUSTER_ID: this is cluster the-cluster, not another",
            ]
            assert connects(world) > 30
            await asyncio.sleep(REPEATED_AFTER_S)
            assert len(lines) == 4
        assert one.lanes == two.lanes == []

    in_world(scenario)


def test_a_broker_that_is_not_there_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(world: World) -> None:
        one, two = await meeting(world)
        caplog.clear()
        two.machine.crash(power_loss=False)
        await asyncio.sleep(60)
        assert [line.partition(" at ")[0].partition(":")[0] for line in caplog.messages] == [
            "the control lane to broker 2 was lost",
            "the control lane to broker 2",
        ]
        caplog.clear()
        await two.boot()
        await world.until(lambda: one.peers.live == (2,))
        await asyncio.sleep(60)
        assert caplog.messages == []
        for times in (1, 2):
            world.network.reset("b1", "b2")
            await asyncio.sleep(60)
            assert caplog.messages == ["the control lane to broker 2 was lost: connection reset"] * times

    with caplog.at_level(logging.INFO, "tailrace"):
        in_world(scenario)


def test_a_lane_that_comes_and_goes_does_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(world: World) -> None:
        one, _ = await meeting(world)
        await one.do(lambda peers: peers.lane(BrokerId(2), LaneKind.FETCH))
        for _ in range(50):
            await world.until(lambda: one.lanes.count(("up", 2, "fetch")) > one.lanes.count(("down", 2, "fetch")))
            world.network.reset("b1", "b2")
            await asyncio.sleep(0.1)
        assert len([line for line in caplog.messages if "fetch lane" in line]) < 5

    with caplog.at_level(logging.INFO, "tailrace"):
        in_world(scenario)


def test_complaints_are_few_whatever_others_say() -> None:
    clock = StandingClock()
    complaints = Complaints(clock)
    with heard() as lines:
        for number in range(10 * KEPT_MAX):
            complaints.log_closing("10.0.0.1", number, f"nonsense {number}\n2026-01-01 WARNING all is lost")
        assert len(lines) == KEPT_MAX
        assert "\n" not in lines[0]
        clock.now = REPEATED_AFTER_S + 1
        complaints.log_closing("10.0.0.1", 1, "x" * 100_000)
        assert len(lines) == KEPT_MAX + 1
        assert len(lines[-1]) < 1_000
