"""An asyncio event loop on virtual time: one seed, one order of events.

Time stands still while callbacks run and jumps to the next timer when none is left. Callbacks run in the order they
were scheduled, timers by (time, order of scheduling): chance belongs to the ports, never to the loop. Sockets, threads,
signals and the real clock are refused. Whatever nobody handles (an exception in a callback, a failed task that nobody
awaited) fails the run, unless its process is dead. The cyclic garbage collector is off during a run: what it would
close, and when, depends on the whole Python process.
"""

import asyncio
import gc
import sys
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import suppress
from contextvars import Context, copy_context
from heapq import heapify, heappop, heappush
from typing import Any, Final, TypeVar, TypeVarTuple

from tailrace.testing.simulation.failures import Deadlock, RanTooLong, SimulationFailed
from tailrace.testing.simulation.handle import SimHandle
from tailrace.testing.simulation.incarnation import Incarnation, owner
from tailrace.testing.simulation.real_world import NoRealWorld

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

STEPS_DEFAULT_MAX: Final = 50_000_000
SECONDS_DEFAULT_MAX: Final = 30 * 24 * 3600.0
TIMERS_SWEPT_MIN: Final = 1024  # cancelled timers are swept out when they are half of at least so many
TASKS_SWEPT_MIN: Final = 256
TASKS_NAMED_MAX: Final = 20  # in a deadlock's message


class SimLoop(NoRealWorld):
    def __init__(self) -> None:
        self.steps = 0
        self.steps_max = STEPS_DEFAULT_MAX
        self.seconds_max = SECONDS_DEFAULT_MAX
        self._now = 0.0
        self._serial = 0
        self._ready: deque[SimHandle] = deque()
        self._timers: list[tuple[float, int, SimHandle]] = []
        self._timers_cancelled = 0
        self._tasks: list[tuple[asyncio.Task[Any], Incarnation | None]] = []  # all that are pending, or failed unseen
        self._tasks_sweep_at = TASKS_SWEPT_MIN
        self._tasks_made = 0
        self._stopping = False
        self._running = False
        self._closed = False
        self._failure: SimulationFailed | None = None
        self._handler: Callable[[asyncio.AbstractEventLoop, dict[str, Any]], object] | None = None

    # Scheduling

    def time(self) -> float:
        return self._now

    def call_soon(self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None) -> SimHandle:
        handle = SimHandle(self._now, callback, args, copy_context() if context is None else context, self)
        self._ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon

    def call_later(
        self, delay: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> SimHandle:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> SimHandle:
        if self._closed:
            raise RuntimeError("the simulated loop is closed")
        if when <= self._now:
            return self.call_soon(callback, *args, context=context)
        handle = SimHandle(when, callback, args, copy_context() if context is None else context, self)
        self._serial += 1
        heappush(self._timers, (when, self._serial, handle))
        return handle

    def timer_cancelled(self) -> None:
        self._timers_cancelled += 1
        if self._timers_cancelled * 2 > len(self._timers) > TIMERS_SWEPT_MIN:
            self._timers = [entry for entry in self._timers if not entry[2].cancelled()]
            heapify(self._timers)
            self._timers_cancelled = 0

    def create_future(self) -> "asyncio.Future[Any]":
        return asyncio.Future(loop=self)

    def create_task(
        self,
        coro: Generator[Any, None, T] | Coroutine[Any, Any, T],
        *,
        name: object = None,
        context: Context | None = None,
    ) -> "asyncio.Task[T]":
        if self._closed:
            coro.close()
            raise RuntimeError("the simulated loop is closed")
        self._tasks_made += 1
        # asyncio's own names count all tasks of the Python process: they would differ between two runs
        task = asyncio.Task(coro, loop=self, name=str(name or f"task-{self._tasks_made}"), context=context)
        self._tasks.append((task, owner.get() if context is None else context.get(owner)))
        if len(self._tasks) >= self._tasks_sweep_at:
            self._tasks = [entry for entry in self._tasks if not entry[0].done() or _failed_unseen(entry[0])]
            self._tasks_sweep_at = max(TASKS_SWEPT_MIN, 2 * len(self._tasks))
        return task

    # Running

    def run_until_complete(self, future: Any) -> Any:
        if self._closed or self._running or asyncio._get_running_loop() is not None:
            raise RuntimeError("the simulated loop is closed, or runs within a loop already")
        main = asyncio.ensure_future(future, loop=self)
        main.add_done_callback(self._main_done)
        self._stopping = main.done()
        collecting = gc.isenabled()
        hooks = sys.get_asyncgen_hooks()
        gc.disable()
        asyncio._set_running_loop(self)
        sys.set_asyncgen_hooks(finalizer=self._close_generator)
        self._running = True
        try:
            self._run()
            if not main.done() or main.cancelled() or main.exception() is None:
                self._check_tasks()
        finally:
            self._running = False
            sys.set_asyncgen_hooks(*hooks)
            asyncio._set_running_loop(None)
            if collecting:
                gc.enable()
        return main.result()

    def _run(self) -> None:
        ready = self._ready
        steps_end = self.steps + self.steps_max
        while not self._stopping:
            if not ready:
                self._advance()
                continue
            handle = ready.popleft()
            if handle._cancelled:
                continue
            one = handle.owner
            if one is not None and one.halted:
                one.held.append(handle)
                continue
            self.steps += 1
            try:
                handle.context.run(handle.callback, *handle.arguments)
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:
                if one is None or one.alive:
                    self.call_exception_handler({"message": f"{handle!r} raised", "exception": error})
            if self._failure is not None:
                failure, self._failure = self._failure, None
                raise failure
            if self.steps >= steps_end:
                self._check_tasks()
                raise RanTooLong(f"{self.steps_max} steps and no end, at {self._now:.6f} s; next: {list(ready)[:5]}")

    def _advance(self) -> None:
        """Jump to the next timer, and take all that are due with it."""
        timers, ready = self._timers, self._ready
        while timers and timers[0][2]._cancelled:
            heappop(timers)
            self._timers_cancelled -= 1
        if not timers:
            self._check_tasks()
            raise Deadlock(f"nothing left to run at {self._now:.6f} s; waiting: {self._waiting()}")
        if timers[0][0] > self.seconds_max:
            self._check_tasks()
            raise RanTooLong(f"no end after {self.seconds_max} virtual seconds; waiting: {self._waiting()}")
        self._now = now = timers[0][0]
        while timers and timers[0][0] <= now:
            handle = heappop(timers)[2]
            if handle._cancelled:
                self._timers_cancelled -= 1
            else:
                ready.append(handle)

    def _main_done(self, main: "asyncio.Future[Any]") -> None:
        self._stopping = True

    def resume(self, one: Incarnation) -> None:
        """Let what was held while an incarnation was paused run, before anything younger."""
        one.halted = not one.alive
        if one.alive:
            while one.held:
                held = one.held.pop()
                assert isinstance(held, SimHandle)
                self._ready.appendleft(held)

    # Failures

    def set_exception_handler(self, handler: Any) -> None:
        self._handler = handler

    def get_exception_handler(self) -> Any:
        return self._handler

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        if self._running and self._failure is None:
            self._failure = SimulationFailed(f"at {self._now:.6f} s: {context['message']}")
            self._failure.__cause__ = context.get("exception")

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if self._handler is None:
            self.default_exception_handler(context)
        else:
            self._handler(self, context)

    def _check_tasks(self) -> None:
        for task, one in self._tasks:
            if _failed_unseen(task) and (one is None or one.alive):
                raise SimulationFailed(f"nobody saw {task.get_name()} of {one!r} fail") from task.exception()

    def _waiting(self) -> str:
        pending = [f"{task.get_name()} of {one!r}: {task.get_coro()!r}" for task, one in self._tasks if not task.done()]
        return "; ".join(pending[:TASKS_NAMED_MAX])

    def _close_generator(self, generator: "AsyncGenerator[Any, Any]") -> None:
        if not self._closed:
            self.create_task(generator.aclose())

    # The rest of a loop's life

    def is_running(self) -> bool:
        return self._running

    def is_closed(self) -> bool:
        return self._closed

    def get_debug(self) -> bool:
        return False

    def stop(self) -> None:
        self._stopping = True

    def close(self) -> None:
        """Close what still waits. Every process is dead by now: its `finally` blocks find ports that raise."""
        self._closed = True
        for task, _ in self._tasks:
            if not task.done():
                with suppress(BaseException):  # whatever the dead say
                    task.get_coro().close()
            elif not task.cancelled():
                task.exception()  # seen, so that its end is silent
        self._tasks.clear()
        self._ready.clear()
        self._timers.clear()


def _failed_unseen(task: "asyncio.Task[Any]") -> bool:
    return task.done() and bool(task._log_traceback)
