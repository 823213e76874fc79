"""The offload port of one process: work off the event loop, without threads.

The call runs either at once or when its delay has passed, as the seed decides: code must not depend on which. The
result arrives after the delay in both cases.
"""

import asyncio
import pickle
import random
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from tailrace.ports.offload import WorkerLost
from tailrace.ports.worker_process import outcome
from tailrace.testing.simulation.loop import SimLoop
from tailrace.testing.simulation.process import SimProcess
from tailrace.testing.simulation.randomness import Odds

T = TypeVar("T")


class SimOffload:
    def __init__(self, loop: SimLoop, rng: random.Random, odds: Odds, process: SimProcess) -> None:
        self._loop = loop
        self._rng = rng
        self._odds = odds
        self._process = process

    def thread(self, call: Callable[[], T]) -> "asyncio.Future[T]":
        self._process.check_alive()
        future: asyncio.Future[T] = self._loop.create_future()
        early = _outcome(call) if self._rng.random() < 0.5 else None

        def finish() -> None:
            result, error = early or _outcome(call)
            if future.done():
                return
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(result)  # type: ignore[arg-type]

        # in the process's context: the threads of a paused process are paused too
        self._loop.call_later(self._odds.offload.draw(self._rng), finish, context=self._process.context)
        return future

    def thread_then(self, call: Callable[[], object], ended: Callable[[BaseException | None], None]) -> None:
        self.thread(call).add_done_callback(lambda future: ended(future.exception()))

    def read(self, call: Callable[[], T]) -> "asyncio.Future[T]":
        return self.thread(call)

    def process(self, call: Callable[..., T], *arguments: object) -> "asyncio.Future[T]":
        pickle.dumps(call)  # as with a real worker process, what cannot be pickled fails at once
        pickled = pickle.dumps(arguments)
        return self.thread(lambda: _in_worker(call, pickled))

    def session(self, make: Callable[..., object], *arguments: object) -> "SimSession":
        self._process.check_alive()
        return SimSession(self, self._rng, self._odds, pickle.dumps((make, arguments)))

    def close(self) -> None:
        self._process.check_alive()


class SimSession:
    """An object in a worker process, which the seed may lose in any call."""

    def __init__(self, offload: SimOffload, rng: random.Random, odds: Odds, made: bytes) -> None:
        self._offload = offload
        self._rng = rng
        self._odds = odds
        self._made = made  # how the object is made, pickled
        self._subject: object = None
        self._started = False
        self._lost: str | None = None
        self._waiting: deque[tuple[bytes, asyncio.Future[Any]]] = deque()  # the first one is under way

    def call(self, method: str, *arguments: object, **named: object) -> "asyncio.Future[Any]":
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if self._lost is not None:
            future.set_exception(WorkerLost(self._lost))
            return future
        try:
            passed = tuple(bytes(one) if isinstance(one, memoryview) else one for one in arguments)
            pickled = pickle.dumps((method, passed, named))
        except Exception as error:
            future.set_exception(error)
            return future
        self._waiting.append((pickled, future))
        if len(self._waiting) == 1:
            self._run_next()
        return future

    def close(self) -> None:
        self._lose("the session was closed")

    def _run_next(self) -> None:
        pickled, _ = self._waiting[0]
        if self._rng.random() < self._odds.worker_lost_chance:
            call: Callable[[], bytes | None] = lambda: None  # noqa: E731
        else:
            call = partial(self._work, pickled)
        self._offload.thread(call).add_done_callback(self._ended)

    def _work(self, pickled: bytes) -> bytes:
        failed: Exception | None = None
        if not self._started:
            make, arguments = pickle.loads(self._made)
            try:
                self._subject = make(*arguments)
            except Exception as error:
                failed = error
            else:
                self._started = True
        return outcome(self._subject, failed, *pickle.loads(pickled))

    def _ended(self, answered: "asyncio.Future[bytes | None]") -> None:
        if self._lost is not None:
            return
        answer = answered.result()
        if answer is None:
            self._lose("the worker process was lost")
            return
        _, future = self._waiting.popleft()
        result, error = pickle.loads(answer)
        if not future.done():
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)
        if self._waiting:
            self._run_next()

    def _lose(self, why: str) -> None:
        if self._lost is not None:
            return
        self._lost, self._subject = why, None
        for _, future in self._waiting:
            if not future.done():
                future.set_exception(WorkerLost(why))
        self._waiting.clear()


def _outcome(call: Callable[[], T]) -> tuple[T | None, Exception | None]:
    try:
        return call(), None
    except Exception as error:
        return None, error


def _in_worker(call: Callable[..., T], arguments: bytes) -> T:
    """Call as a worker process would: arguments and result pass through pickle."""
    result: T = pickle.loads(pickle.dumps(call(*pickle.loads(arguments))))
    return result
