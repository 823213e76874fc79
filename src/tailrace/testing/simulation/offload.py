"""Work off the loop, without threads: the call runs at once or at the end, its answer comes later."""

import asyncio
import pickle
import random
from collections.abc import Callable
from typing import TypeVar

from tailrace.testing.simulation.chance import Odds
from tailrace.testing.simulation.incarnation import Incarnation
from tailrace.testing.simulation.loop import SimLoop

T = TypeVar("T")


class SimOffload:
    def __init__(self, loop: SimLoop, chance: random.Random, odds: Odds, process: Incarnation) -> None:
        self._loop = loop
        self._chance = chance
        self._odds = odds
        self._process = process

    def thread(self, call: Callable[[], T]) -> "asyncio.Future[T]":
        self._process.check()
        future: asyncio.Future[T] = self._loop.create_future()
        early = _outcome(call) if self._chance.random() < 0.5 else None

        def ended() -> None:
            answer, error = early or _outcome(call)
            if future.done():
                return
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(answer)  # type: ignore[arg-type]

        # in the process's context: a paused process computes nothing
        self._loop.call_later(self._odds.offload.draw(self._chance), ended, context=self._process.context)
        return future

    def read(self, call: Callable[[], T]) -> "asyncio.Future[T]":
        return self.thread(call)

    def process(self, call: Callable[..., T], *arguments: object) -> "asyncio.Future[T]":
        pickle.dumps(call)  # what cannot be pickled must fail here too
        work = pickle.dumps(arguments)
        return self.thread(lambda: _in_worker(call, work))

    def close(self) -> None:
        self._process.check()


def _outcome(call: Callable[[], T]) -> tuple[T | None, Exception | None]:
    try:
        return call(), None
    except Exception as error:
        return None, error


def _in_worker(call: Callable[..., T], arguments: bytes) -> T:
    answer: T = pickle.loads(pickle.dumps(call(*pickle.loads(arguments))))
    return answer
