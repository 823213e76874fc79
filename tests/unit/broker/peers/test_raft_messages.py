"""Sending Raft messages: batched per turn of the loop, bounded, in order."""

import asyncio

import pytest

from tailrace.broker.peers import peers
from tailrace.model.ids import BrokerId
from tailrace.model.limits import RAFT_MESSAGES_PER_FRAME_MAX
from tailrace.testing.simulation import World
from tests.unit.broker.peers.stage import (
    in_world,
    key,
    meeting,
    vote_request,
)


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
    count = 2 * RAFT_MESSAGES_PER_FRAME_MAX + 500
    monkeypatch.setattr(peers, "RAFT_MESSAGES_GATHERED_MAX", count)

    async def scenario(world: World) -> None:
        one, two = await meeting(world)

        def speak(peers: peers.Peers) -> None:
            for epoch in range(count + 7):
                peers.send(BrokerId(2), key(1), vote_request(one.me, 2, epoch))

        await one.do(speak)
        await world.until(lambda: len(two.epochs) >= count)
        await asyncio.sleep(1)
        assert two.epochs == list(range(count))
        assert [len(frame) for frame in two.frames] == [RAFT_MESSAGES_PER_FRAME_MAX] * 2 + [500]

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
