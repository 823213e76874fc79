"""Threads for blocking calls: when the loop learns of an end, and what becomes of errors and of calls that wait."""

import asyncio
import threading

import pytest

from tailrace.ports.worker_threads import WorkerThreads


def test_the_loop_handles_the_end_of_a_call_in_one_turn() -> None:
    async def main() -> None:
        threads, loop = WorkerThreads("test", 1), asyncio.get_running_loop()
        events: list[str] = []

        def ended(ident: int, error: BaseException | None) -> None:
            assert (ident != threading.get_ident(), error) == (True, None)
            events.append("ended")

        threads.run(threading.get_ident, ended)
        threads.close()  # the call has run, and the loop has had no turn yet
        loop.call_soon(events.append, "next")
        await asyncio.sleep(0)
        assert events == ["ended", "next"]

    asyncio.run(main())


def test_an_error_is_passed_on() -> None:
    async def main() -> None:
        threads, ended = WorkerThreads("test", 1), asyncio.get_running_loop().create_future()
        threads.run(lambda: 1 // 0, lambda _, error: ended.set_result(error))
        assert isinstance(await ended, ZeroDivisionError)
        threads.close()

    asyncio.run(main())


def test_calls_beyond_the_number_of_threads_wait_and_all_run_before_the_threads_end() -> None:
    async def main() -> None:
        threads, gate = WorkerThreads("test", 2), threading.Event()
        begun, ended = threading.Semaphore(0), []

        def call() -> int:
            begun.release()
            assert gate.wait(10)
            return threading.get_ident()

        for _ in range(5):
            threads.run(call, lambda ident, _: ended.append(ident))
        assert begun.acquire(timeout=10)
        assert begun.acquire(timeout=10)
        assert not begun.acquire(timeout=0)
        gate.set()
        threads.close()
        await asyncio.sleep(0)
        assert (len(ended), len(set(ended))) == (5, 2)
        with pytest.raises(RuntimeError, match="have ended"):
            threads.run(call, lambda *_: None)

    asyncio.run(main())


def test_a_thread_whose_call_outlives_its_loop_serves_the_next_loop() -> None:
    threads, gate = WorkerThreads("test", 1), threading.Event()

    async def leave() -> None:
        threads.run(lambda: gate.wait(10), lambda *_: None)

    async def run() -> int:
        ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        threads.run(lambda: 7, lambda result, _: ended.set_result(result))
        return await asyncio.wait_for(ended, 10)

    asyncio.run(leave())
    gate.set()
    assert asyncio.run(run()) == 7
    threads.close()
