"""An asyncio event loop on virtual time, whose order of events depends on nothing but the program.

- Virtual time stands still while callbacks run; when none is ready, it jumps to the next timer.
- Callbacks run in the order in which they were scheduled, timers by (time, order of scheduling). The loop draws no
  random numbers: all randomness is in the ports.
- Calls that need sockets, threads or signals raise `NotSimulated`.
- An unhandled failure (an exception in a callback, a failed task whose exception was never retrieved) fails the run,
  unless it belongs to a process that is dead.
- The callbacks of a halted process are not run but held: see `process`.
- The cyclic garbage collector is off during a run, because what it would close, and when, depends on everything else
  in the Python process.
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
from tailrace.testing.simulation.process import SimProcess, current_process
from tailrace.testing.simulation.refused_calls import LoopWithoutRealIO

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

STEPS_DEFAULT_MAX: Final = 50_000_000
SECONDS_DEFAULT_MAX: Final = 30 * 24 * 3600.0
TIMERS_SWEPT_MIN: Final = 1024  # with more timers than this, cancelled ones are removed once they are the majority
TASKS_SWEPT_MIN: Final = 256  # with at least this many tasks, finished ones are removed
TASKS_NAMED_MAX: Final = 20  # in the message of a deadlock


class SimHandle(asyncio.TimerHandle):
    """A callback that waits for its turn.

    One is made per callback, so it sets none of asyncio's own fields but `_cancelled`.
    """

    __slots__ = ("arguments", "callback", "context", "due", "loop", "process")

    def __init__(
        self, due: float, callback: Callable[..., object], arguments: Any, context: Context, loop: "SimLoop"
    ) -> None:
        self.due = due
        self.callback = callback
        self.arguments = arguments
        self.context = context
        self.process = context.get(current_process)
        self.loop = loop
        self._cancelled = False

    def __repr__(self) -> str:
        return f"<SimHandle {self.callback!r} of {self.process!r} at {self.due:.6f}>"

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other

    def when(self) -> float:
        return self.due

    def cancelled(self) -> bool:
        return self._cancelled

    def cancel(self) -> None:
        if not self._cancelled:
            self._cancelled = True
            if self.due > self.loop.time():
                self.loop.timer_cancelled()


class SimLoop(LoopWithoutRealIO):
    def __init__(self) -> None:
        self.steps = 0
        self.steps_max = STEPS_DEFAULT_MAX
        self.seconds_max = SECONDS_DEFAULT_MAX
        self._now = 0.0
        self._serial = 0
        self._ready: deque[SimHandle] = deque()
        self._timers: list[tuple[float, int, SimHandle]] = []
        self._timers_cancelled = 0
        # tasks that are pending, or failed with an exception that was not retrieved
        self._tasks: list[tuple[asyncio.Task[Any], SimProcess | None]] = []
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
        # asyncio's default names count all tasks of the Python process, so they would differ between two runs
        task = asyncio.Task(coro, loop=self, name=str(name or f"task-{self._tasks_made}"), context=context)
        self._tasks.append((task, current_process.get() if context is None else context.get(current_process)))
        if len(self._tasks) >= self._tasks_sweep_at:
            self._tasks = [entry for entry in self._tasks if not entry[0].done() or _is_unretrieved(entry[0])]
            self._tasks_sweep_at = max(TASKS_SWEPT_MIN, 2 * len(self._tasks))
        return task

    # Running

    def run_until_complete(self, future: Any) -> Any:
        if self._closed or self._running or asyncio._get_running_loop() is not None:
            raise RuntimeError("the simulated loop is closed, or an event loop is already running")
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
            process = handle.process
            if process is not None and process.halted:
                process.held.append(handle)
                continue
            self.steps += 1
            try:
                handle.context.run(handle.callback, *handle.arguments)
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:
                if process is None or process.alive:
                    self.call_exception_handler({"message": f"{handle!r} raised", "exception": error})
            if self._failure is not None:
                failure, self._failure = self._failure, None
                raise failure
            if self.steps >= steps_end:
                self._check_tasks()
                raise RanTooLong(
                    f"not finished after {self.steps_max} steps, at {self._now:.6f} s; next: {list(ready)[:5]}"
                )

    def _advance(self) -> None:
        """Jump to the time of the next timer, and make all timers of that time ready."""
        timers, ready = self._timers, self._ready
        while timers and timers[0][2]._cancelled:
            heappop(timers)
            self._timers_cancelled -= 1
        if not timers:
            self._check_tasks()
            raise Deadlock(f"deadlock at {self._now:.6f} s: nothing is left to run; pending: {self._pending()}")
        if timers[0][0] > self.seconds_max:
            self._check_tasks()
            raise RanTooLong(f"not finished after {self.seconds_max} virtual seconds; pending: {self._pending()}")
        self._now = now = timers[0][0]
        while timers and timers[0][0] <= now:
            handle = heappop(timers)[2]
            if handle._cancelled:
                self._timers_cancelled -= 1
            else:
                ready.append(handle)

    def _main_done(self, main: "asyncio.Future[Any]") -> None:
        self._stopping = True

    def resume(self, process: SimProcess) -> None:
        """End a pause: the callbacks that were held run before those that became due later."""
        process.halted = not process.alive
        if process.alive:
            while process.held:
                held = process.held.pop()
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
        for task, process in self._tasks:
            if _is_unretrieved(task) and (process is None or process.alive):
                message = f"{task.get_name()} of {process!r} failed, and its exception was never retrieved"
                raise SimulationFailed(message) from task.exception()

    def _pending(self) -> str:
        pending = [(task, process) for task, process in self._tasks if not task.done()]
        return "; ".join(
            f"{task.get_name()} of {process!r}: {task.get_coro()!r}" for task, process in pending[:TASKS_NAMED_MAX]
        )

    def _close_generator(self, generator: "AsyncGenerator[Any, Any]") -> None:
        if not self._closed:
            self.create_task(generator.aclose())

    # State and end

    def is_running(self) -> bool:
        return self._running

    def is_closed(self) -> bool:
        return self._closed

    def get_debug(self) -> bool:
        return False

    def stop(self) -> None:
        self._stopping = True

    def close(self) -> None:
        """Close the coroutines that are still pending.

        Every process is dead by now, so all ports raise in the `finally` blocks that this runs.
        """
        self._closed = True
        for task, _ in self._tasks:
            if not task.done():
                with suppress(BaseException):  # their `finally` blocks may raise anything
                    task.get_coro().close()
            elif not task.cancelled():
                task.exception()  # retrieved, so that asyncio logs nothing about it
        self._tasks.clear()
        self._ready.clear()
        self._timers.clear()


def _is_unretrieved(task: "asyncio.Task[Any]") -> bool:
    """Whether a task failed and its exception was not retrieved."""
    return task.done() and bool(task._log_traceback)
