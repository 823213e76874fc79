"""Sessions: an object in a worker process of its own."""

import asyncio
import os
import signal
import time

import pytest

from tailrace.ports.offload import SystemOffload, WorkerLost


class Counter:
    def __init__(self, start: int) -> None:
        if start < 0:
            raise ValueError(f"cannot start at {start}")
        self._count = start

    def add(self, number: int, *, times: int = 1) -> int:
        self._count += number * times
        return self._count

    def nice(self) -> int:
        print("this is not a result")  # noqa: T201
        return os.nice(0)

    def echo(self, data: bytes) -> bytes:
        return data

    def unpicklable(self) -> object:
        return lambda: None

    def stuck(self) -> None:
        signal.pause()


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


async def calls_results_and_errors(offload: SystemOffload) -> None:
    session = offload.session(Counter, 5)
    assert session.pid is None
    first, second = session.call("add", 1), session.call("add", 2, times=10)
    assert (await first, await second) == (6, 26)
    assert await session.call("nice") == 19
    with pytest.raises(TypeError):
        await session.call("add", "x")
    with pytest.raises((AttributeError, RuntimeError)):
        await session.call("unpicklable")
    with pytest.raises((AttributeError, TypeError, Exception)):
        await session.call("add", lambda: 1)
    session.call("add", 4).cancel()
    assert await session.call("add", 0) == 30  # what nobody waits for is done all the same
    session.close()
    session.close()
    assert session.pid is not None
    assert gone(session.pid)
    with pytest.raises(WorkerLost, match="closed"):
        await session.call("add", 1)


def run(scenario: object) -> None:
    offload = SystemOffload()
    try:
        asyncio.run(scenario(offload))  # type: ignore[operator]
    finally:
        offload.close()


def test_calls_results_and_errors() -> None:
    run(calls_results_and_errors)


def test_a_killed_worker_is_lost_and_a_new_session_works() -> None:
    async def scenario(offload: SystemOffload) -> None:
        session = offload.session(Counter, 0)
        assert await session.call("add", 1) == 1
        stuck = session.call("stuck")
        assert session.pid is not None
        os.kill(session.pid, signal.SIGKILL)
        with pytest.raises(WorkerLost, match="exit code -9"):
            await stuck
        with pytest.raises(WorkerLost):
            await session.call("add", 1)
        session.close()
        assert await offload.session(Counter, 7).call("add", 1) == 8

    run(scenario)


def test_what_cannot_be_made_fails_every_call() -> None:
    async def scenario(offload: SystemOffload) -> None:
        session = offload.session(Counter, -1)
        for _ in range(2):
            with pytest.raises(ValueError, match="cannot start at -1"):
                await session.call("add", 1)

    run(scenario)


def test_closing_the_port_ends_a_stuck_worker() -> None:
    async def scenario(offload: SystemOffload) -> None:
        session = offload.session(Counter, 0)
        await session.call("add", 1)
        stuck = session.call("stuck")
        offload.close()
        with pytest.raises(WorkerLost):
            await stuck
        assert session.pid is not None
        assert gone(session.pid)

    run(scenario)


def test_large_bytes_pass_quickly() -> None:
    async def scenario(offload: SystemOffload) -> None:
        session, data = offload.session(Counter, 0), os.urandom(8 << 20)
        assert await session.call("echo", data) == data
        began = time.monotonic()
        for _ in range(10):
            await session.call("echo", data)
        assert time.monotonic() - began < 5  # some 0.2 s on a free machine

    run(scenario)


def test_large_arguments_and_views_of_buffers_arrive_as_bytes() -> None:
    async def scenario(offload: SystemOffload) -> None:
        session, large = offload.session(Counter, 0), os.urandom(3_000_000)
        for argument in (large, memoryview(large)[5:-7], memoryview(b"small"), memoryview(b""), b""):
            arrived = await session.call("echo", argument)
            assert isinstance(arrived, bytes)
            assert arrived == argument

    run(scenario)
