"""`taking_gate`: who of the callers of a taker may ask now."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tailrace.client.taking_gate import Gate, Turn

Play = Callable[[Gate], Coroutine[Any, Any, None]]


def play(work: Play) -> None:
    asyncio.run(work(Gate()))


async def come(
    gate: Gate, room: int, at: float, waits_s: float = 10.0, *, is_back: bool = False
) -> "asyncio.Task[Turn]":
    task = asyncio.ensure_future(gate.enter(room, at, at, waits_s, is_back=is_back))
    await asyncio.sleep(0)
    return task


def test_callers_have_their_turn_in_order() -> None:
    async def work(gate: Gate) -> None:
        first, second, third, fourth = [await come(gate, 2, at) for at in range(4)]
        assert [one.done() for one in (first, second, third, fourth)] == [True, True, False, False]
        gate.leave(2)
        assert await third is Turn.ASK
        back = await come(gate, 2, 0, is_back=True)
        gate.leave(2)
        assert await back is Turn.ASK
        assert not fourth.done()
        gate.leave(1)  # there is less room now
        gate.leave(1)
        assert await fourth is Turn.ASK
        assert not gate.is_idle
        gate.leave(1)
        assert gate.is_idle

    play(work)


def test_an_empty_queue_is_told_to_those_who_came_before_it_was_asked() -> None:
    async def work(gate: Gate) -> None:
        await come(gate, 1, 0)
        before, after = await come(gate, 1, 1), await come(gate, 1, 3)
        waits = asyncio.ensure_future(gate.enter(1, 1, 9, 10.0, is_back=False))
        await asyncio.sleep(0)
        gate.is_empty(asked_at=2, now=4)
        assert await before is Turn.EMPTY
        await asyncio.sleep(0)
        assert not after.done()
        assert not waits.done()  # it does not give up yet
        assert gate.has_been_empty(2)
        assert not gate.has_been_empty(3)
        gate.leave(2)
        assert await after is Turn.ASK
        assert await waits is Turn.ASK

    play(work)


def test_nobody_waits_for_ever() -> None:
    async def work(gate: Gate) -> None:
        await come(gate, 1, 0)
        assert await (await come(gate, 1, 1, 0.01)) is Turn.LATE
        gate.is_empty(asked_at=2, now=2)
        assert await (await come(gate, 1, 2, 0.0)) is Turn.EMPTY
        assert await (await come(gate, 1, 3, 0.01)) is Turn.LATE

    play(work)


@pytest.mark.parametrize("has_turn", [False, True])
def test_a_caller_that_gives_up_leaves_its_place(has_turn: bool) -> None:
    async def work(gate: Gate) -> None:
        await come(gate, 1, 0)
        waiting = await come(gate, 1, 1)
        if has_turn:
            gate.leave(1)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        if not has_turn:
            gate.leave(1)
        assert gate.is_idle

    play(work)
