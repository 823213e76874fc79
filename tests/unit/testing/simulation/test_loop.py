"""The simulated loop behaves as asyncio documents, and fails the run on every unhandled failure."""

import asyncio
import gc
import itertools
from collections.abc import AsyncIterator

import pytest

from tailrace.testing.simulation import Deadlock, NotSimulated, RanTooLong, SimLoop, SimulationFailed


def test_callbacks_run_in_the_order_they_were_scheduled_and_timers_by_time() -> None:
    loop = SimLoop()
    seen: list[str] = []

    async def main() -> None:
        loop.call_later(2, seen.append, "two")
        loop.call_later(1, seen.append, "one, first")
        loop.call_at(1, seen.append, "one, second")
        loop.call_later(0, seen.append, "now")
        loop.call_soon(seen.append, "soon")
        await asyncio.sleep(3)

    loop.run_until_complete(main())
    assert seen == ["now", "soon", "one, first", "one, second", "two"]
    assert loop.time() == 3


def test_asyncio_primitives_work_on_virtual_time() -> None:
    loop = SimLoop()

    async def answer(after: float) -> float:
        await asyncio.sleep(after)
        return after

    async def main() -> None:
        assert list(await asyncio.gather(answer(5), answer(1))) == [5, 1]
        assert loop.time() == 5
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(answer(100), 10)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(10):
                await asyncio.sleep(100)
        event = asyncio.Event()
        loop.call_later(75, event.set)
        await event.wait()
        task = asyncio.create_task(answer(100))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        queue: asyncio.Queue[int] = asyncio.Queue()
        loop.call_soon_threadsafe(queue.put_nowait, 7)
        assert await queue.get() == 7

    loop.run_until_complete(main())
    assert loop.time() == 100


def test_an_async_generator_left_early_is_closed() -> None:
    loop = SimLoop()
    ends: list[str] = []

    async def numbers() -> AsyncIterator[int]:
        try:
            for number in range(10):
                yield number
        finally:
            await asyncio.sleep(1)
            ends.append("closed")

    async def main() -> None:
        async for number in numbers():
            if number == 3:
                break
        await asyncio.sleep(2)

    loop.run_until_complete(main())
    assert ends == ["closed"]


def test_a_cancelled_timer_neither_runs_nor_moves_time() -> None:
    loop = SimLoop()

    async def main() -> None:
        timers = [loop.call_later(1000 + number, lambda: 1 / 0) for number in range(5000)]
        for timer in timers:
            timer.cancel()
        assert len(loop._timers) < 2000  # removed before their time comes
        await asyncio.sleep(1)

    loop.run_until_complete(main())
    assert loop.time() == 1


def test_an_exception_in_a_callback_fails_the_run() -> None:
    loop = SimLoop()

    async def main() -> None:
        loop.call_soon(lambda: 1 / 0)
        await asyncio.sleep(1)

    with pytest.raises(SimulationFailed) as caught:
        loop.run_until_complete(main())
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


async def failed_task() -> "asyncio.Task[None]":
    async def broken() -> None:
        raise ValueError("broken")

    task = asyncio.create_task(broken())
    await asyncio.sleep(1)
    return task


def test_a_failed_task_whose_exception_is_not_retrieved_fails_the_run() -> None:
    loop = SimLoop()

    async def main() -> None:
        task = await failed_task()
        assert task.done()

    with pytest.raises(SimulationFailed, match="never retrieved") as caught:
        loop.run_until_complete(main())
    assert isinstance(caught.value.__cause__, ValueError)


def test_a_failed_task_that_is_awaited_does_not_fail_the_run() -> None:
    async def main() -> None:
        task = await failed_task()
        with pytest.raises(ValueError, match="broken"):
            await task

    SimLoop().run_until_complete(main())


def test_a_deadlock_names_the_pending_tasks() -> None:
    loop = SimLoop()

    async def main() -> None:
        await loop.create_future()

    with pytest.raises(Deadlock, match="main"):
        loop.run_until_complete(main())
    loop.close()


def test_a_run_is_stopped_after_its_maximum_of_steps_or_virtual_time() -> None:
    loop = SimLoop()
    loop.steps_max, loop.seconds_max = 1000, 60

    async def endless(pause: float) -> None:
        for _ in itertools.count():
            await asyncio.sleep(pause)

    for pause in (0, 1):
        with pytest.raises(RanTooLong):
            loop.run_until_complete(endless(pause))
    loop.close()


def test_calls_that_need_real_threads_or_sockets_are_refused_by_name() -> None:
    loop = SimLoop()

    async def main() -> None:
        with pytest.raises(NotSimulated, match="run_in_executor"):
            await asyncio.to_thread(gc.collect)
        with pytest.raises(NotSimulated, match="create_connection"):
            await asyncio.open_connection("localhost", 1)

    loop.run_until_complete(main())


def test_the_garbage_collector_is_off_during_a_run_only() -> None:
    async def main() -> bool:
        return gc.isenabled()

    assert gc.isenabled()
    assert SimLoop().run_until_complete(main()) is False
    assert gc.isenabled()
