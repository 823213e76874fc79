"""Threads and worker processes, for work that must not block the event loop."""

import asyncio
import concurrent.futures
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from tailrace.ports.worker_threads import WorkerThreads, complete

if TYPE_CHECKING:
    from tailrace.ports.worker_process import WorkerProcess

T = TypeVar("T")

THREADS_MAX: Final = 16  # of each pool


class WorkerLost(Exception):
    """The worker process of a session has ended, and its object with it: open a new session."""


class Session(Protocol):
    """An object in a worker process of its own, which the first call starts."""

    def call(self, method: str, *arguments: object, **named: object) -> "asyncio.Future[Any]":
        """Call a method of the object; calls run in their order, each to its end, even when nobody waits any more.

        Arguments and result are pickled; a memoryview arrives as bytes. What the method raises is raised here, and
        `WorkerLost` when the process ends.
        """
        ...

    def close(self) -> None:
        """End the process at once; a call that is under way ends with `WorkerLost`."""
        ...


class Offload(Protocol):
    def thread(self, call: Callable[[], T]) -> "asyncio.Future[T]":
        """Run a call that changes the disk (fsync, removal) in a thread; it must release the GIL."""
        ...

    def thread_then(self, call: Callable[[], object], ended: Callable[[BaseException | None], None]) -> None:
        """As `thread`; then call `ended` in the loop, with the error or None. Nobody can cancel it."""
        ...

    def read(self, call: Callable[[], T]) -> "asyncio.Future[T]":
        """As `thread`, for a call that only reads; in another pool, so that reads and syncs do not delay each other."""
        ...

    def process(self, call: Callable[..., T], *arguments: object) -> "asyncio.Future[T]":
        """Run a computation in a worker process; the call, its arguments and its result are pickled."""
        ...

    def session(self, make: Callable[..., object], *arguments: object) -> Session:
        """Keep `make(*arguments)` in a worker process of its own, of low priority, until the session is closed."""
        ...

    def close(self) -> None: ...


class SystemOffload:
    """Two thread pools, one worker process, and one for each session; each is started at first use."""

    def __init__(self) -> None:
        self._threads = WorkerThreads("offload", THREADS_MAX)
        self._readers = WorkerThreads("read", THREADS_MAX)
        self._processes: concurrent.futures.ProcessPoolExecutor | None = None
        self._sessions: list[WorkerProcess] = []  # open ones

    def thread(self, call: Callable[[], T]) -> "asyncio.Future[T]":
        return _future(self._threads, call)

    def thread_then(self, call: Callable[[], object], ended: Callable[[BaseException | None], None]) -> None:
        self._threads.run(call, lambda _, error: ended(error))

    def read(self, call: Callable[[], T]) -> "asyncio.Future[T]":
        return _future(self._readers, call)

    def process(self, call: Callable[..., T], *arguments: object) -> "asyncio.Future[T]":
        if self._processes is None:
            import multiprocessing  # takes 3 ms, and most brokers start no worker process

            # "spawn", because a forked process may inherit a lock that a thread of its parent holds
            context = multiprocessing.get_context("spawn")
            self._processes = concurrent.futures.ProcessPoolExecutor(1, mp_context=context)
        return asyncio.get_running_loop().run_in_executor(self._processes, call, *arguments)

    def session(self, make: Callable[..., object], *arguments: object) -> "WorkerProcess":
        from tailrace.ports.worker_process import WorkerProcess  # most brokers start without one

        session = WorkerProcess(make, arguments, self._sessions.remove)
        self._sessions.append(session)
        return session

    def close(self) -> None:
        for session in list(self._sessions):
            session.close()
        self._threads.close()
        self._readers.close()
        if self._processes is not None:
            self._processes.shutdown(wait=True, cancel_futures=True)


def _future(threads: WorkerThreads, call: Callable[[], T]) -> "asyncio.Future[T]":
    future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    threads.run(call, partial(complete, future))
    return future
