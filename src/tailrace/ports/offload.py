"""Work that must not run on the event loop."""

import asyncio
import concurrent.futures
import multiprocessing
from collections.abc import Callable
from typing import Final, Protocol, TypeVar

T = TypeVar("T")

THREADS_MAX: Final = 16  # of each kind


class Offload(Protocol):
    def thread(self, call: Callable[[], T]) -> "asyncio.Future[T]":
        """Run a call that releases the GIL and changes the disk (fsync, removal) beside the loop."""
        ...

    def read(self, call: Callable[[], T]) -> "asyncio.Future[T]":
        """As `thread`, for a call that only reads: it never waits behind syncs, nor they behind it."""
        ...

    def process(self, call: Callable[..., T], *arguments: object) -> "asyncio.Future[T]":
        """Run Python that computes in a worker process; call, arguments and answer are pickled."""
        ...

    def close(self) -> None: ...


class SystemOffload:
    """Threads of two kinds and one worker process, all started at first use."""

    def __init__(self) -> None:
        self._threads: concurrent.futures.ThreadPoolExecutor | None = None
        self._readers: concurrent.futures.ThreadPoolExecutor | None = None
        self._processes: concurrent.futures.ProcessPoolExecutor | None = None

    def thread(self, call: Callable[[], T]) -> "asyncio.Future[T]":
        if self._threads is None:
            self._threads = concurrent.futures.ThreadPoolExecutor(THREADS_MAX, thread_name_prefix="offload")
        return asyncio.get_running_loop().run_in_executor(self._threads, call)

    def read(self, call: Callable[[], T]) -> "asyncio.Future[T]":
        if self._readers is None:
            self._readers = concurrent.futures.ThreadPoolExecutor(THREADS_MAX, thread_name_prefix="read")
        return asyncio.get_running_loop().run_in_executor(self._readers, call)

    def process(self, call: Callable[..., T], *arguments: object) -> "asyncio.Future[T]":
        if self._processes is None:
            # "spawn": a fork of a process that runs threads may copy a held lock
            context = multiprocessing.get_context("spawn")
            self._processes = concurrent.futures.ProcessPoolExecutor(1, mp_context=context)
        return asyncio.get_running_loop().run_in_executor(self._processes, call, *arguments)

    def close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown(wait=True)
        if self._readers is not None:
            self._readers.shutdown(wait=True)
        if self._processes is not None:
            self._processes.shutdown(wait=True, cancel_futures=True)
