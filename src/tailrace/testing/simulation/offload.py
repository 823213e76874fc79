"""The offload port of one process: work off the event loop, without threads.

The call runs either at once or when its delay has passed, as the seed decides: code must not depend on which. The
result arrives after the delay in both cases.
"""

import asyncio
import pickle
import random
from collections.abc import Callable
from typing import TypeVar

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

    def close(self) -> None:
        self._process.check_alive()


def _outcome(call: Callable[[], T]) -> tuple[T | None, Exception | None]:
    try:
        return call(), None
    except Exception as error:
        return None, error


def _in_worker(call: Callable[..., T], arguments: bytes) -> T:
    """Call as a worker process would: arguments and result pass through pickle."""
    result: T = pickle.loads(pickle.dumps(call(*pickle.loads(arguments))))
    return result
