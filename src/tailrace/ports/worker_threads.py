"""Threads for blocking calls; the loop that started a call handles its end in the first turn after it.

A future would need more turns: one for itself, one for each copy of it. On a busy loop that takes longer than the call.
"""

import asyncio
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")
Ended = Callable[[Any, BaseException | None], None]  # gets the result, and the error or None


class Work(NamedTuple):
    loop: asyncio.AbstractEventLoop
    call: Callable[[], object]
    ended: Ended


class WorkerThreads:
    """Up to `threads_max` threads, each started when all others are busy. They do not keep the process alive."""

    def __init__(self, name: str, threads_max: int) -> None:
        self._name = name
        self._threads_max = threads_max
        self._threads: list[threading.Thread] = []
        self._waiting: queue.SimpleQueue[Work | None] = queue.SimpleQueue()  # None ends one thread
        self._under_way = 0  # calls whose end the loop has not handled yet
        self._closed = False

    def run(self, call: Callable[[], object], ended: Ended) -> None:
        """Run a call in a thread, then `ended` in this loop; from the loop's thread only."""
        if self._closed:
            raise RuntimeError(f"the {self._name} threads have ended")
        self._under_way += 1
        if self._under_way > len(self._threads) and len(self._threads) < self._threads_max:
            name = f"{self._name}-{len(self._threads)}"
            self._threads.append(threading.Thread(target=self._work, name=name, daemon=True))
            self._threads[-1].start()
        self._waiting.put(Work(asyncio.get_running_loop(), call, ended))

    def close(self) -> None:
        """Wait until every call has run."""
        self._closed = True
        for _ in self._threads:
            self._waiting.put(None)
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while (work := self._waiting.get()) is not None:
            result: object = None
            error: BaseException | None = None
            try:
                result = work.call()
            except BaseException as raised:
                error = raised
            with suppress(RuntimeError):  # the loop was closed meanwhile
                work.loop.call_soon_threadsafe(self._end, work.ended, result, error)
            del work, result, error  # they must not live until the next call

    def _end(self, ended: Ended, result: object, error: BaseException | None) -> None:
        self._under_way -= 1
        ended(result, error)


def complete(future: "asyncio.Future[T]", result: T, error: BaseException | None) -> None:
    """Pass the end of a call to a future, unless that was cancelled."""
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)
