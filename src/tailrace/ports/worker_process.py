"""A worker process that keeps one object, whose methods the loop calls: a session of `Offload`.

The process is a fresh Python, not a fork: a forked process may inherit a lock that a thread of its parent holds. Calls
and results are pickled, and pass through a pipe in each direction. One thread of the parent writes the calls and waits
for the results, one after the other. The worker ends when the pipe of the calls is closed, so it does not outlive its
parent, however that ends. It runs at the lowest priority.
"""

import asyncio
import fcntl
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, BinaryIO, Final

from tailrace.ports.offload import WorkerLost
from tailrace.ports.worker_threads import WorkerThreads, complete

PIPE_BYTES: Final = 1 << 20  # of each pipe's buffer, where the kernel allows it: fewer switches between the processes
NICE: Final = 19
PROTOCOL: Final = 5  # the first with buffers apart from the pickle
APART_BYTES: Final = 1 << 16
_START: Final = "import sys; sys.path[:] = sys.argv[1:]; from tailrace.ports.worker_process import work; work()"

Call = tuple[str, tuple[object, ...], dict[str, object]]  # method, arguments, arguments by name


class WorkerProcess:
    """A session. Its process is started by the first call."""

    def __init__(
        self, make: Callable[..., object], arguments: tuple[object, ...], closed: Callable[["WorkerProcess"], None]
    ) -> None:
        self._make = make
        self._arguments = arguments
        self._closed = closed
        self._thread = WorkerThreads("session", 1)
        self._lock = threading.Lock()  # held while the process is started or ended
        self._process: subprocess.Popen[bytes] | None = None
        self._is_closed = False
        self._lost: str | None = None  # why there is no worker any more

    @property
    def pid(self) -> int | None:
        """The id of the worker process; None before the first call."""
        return None if self._process is None else self._process.pid

    def call(self, method: str, *arguments: object, **named: object) -> "asyncio.Future[Any]":
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if self._lost is not None:
            future.set_exception(WorkerLost(self._lost))
        else:
            self._thread.run(partial(self._exchange, (method, arguments, named)), partial(complete, future))
        return future

    def close(self) -> None:
        """End the process, even in the middle of a call: there is nothing in it to save."""
        if self._is_closed:
            return
        self._is_closed = True
        self._end("the session was closed")
        self._thread.close()
        for pipe in () if self._process is None else (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with suppress(OSError):  # what was not sent stays unsent
                pipe.close()
        self._closed(self)

    def _exchange(self, call: Call) -> object:
        """Send one call and wait for its result; in the thread."""
        large: list[pickle.PickleBuffer] = []
        # whole, before anything is sent: it may fail
        pickled = pickle.dumps(_apart(call), PROTOCOL, buffer_callback=large.append)
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(pickle.dumps([one.raw().nbytes for one in large]))
            for one in large:
                process.stdin.write(one)
            process.stdin.write(pickled)
            process.stdin.flush()
            del pickled, call, large
            result, error = pickle.load(process.stdout)
        except (EOFError, OSError, ValueError, pickle.UnpicklingError) as failure:
            self._end("the worker process has ended")
            raise WorkerLost(self._lost) from failure
        if error is not None:
            raise error
        return result

    def _started(self) -> "subprocess.Popen[bytes]":
        with self._lock:
            if self._lost is not None:
                raise WorkerLost(self._lost)
            if self._process is None:
                made = pickle.dumps((self._make, self._arguments))
                command = [sys.executable, "-c", _START, *sys.path]
                self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                assert self._process.stdin is not None
                assert self._process.stdout is not None
                _enlarge(self._process.stdin)
                _enlarge(self._process.stdout)
                with suppress(OSError):  # it has ended already: the first call finds out
                    self._process.stdin.write(made)
            return self._process

    def _end(self, why: str) -> None:
        with self._lock:
            if self._lost is not None:
                return
            self._lost = why
            if self._process is not None:
                self._process.kill()
                self._lost = f"{why}, exit code {self._process.wait()}"


def _apart(call: Call) -> Call:
    """The call with its large arguments as buffers, which are sent as they are and not copied into the pickle."""
    method, arguments, named = call
    return method, tuple(map(_as_buffer, arguments)), named


def _as_buffer(argument: object) -> object:
    if isinstance(argument, memoryview) or (isinstance(argument, bytes) and len(argument) >= APART_BYTES):
        return pickle.PickleBuffer(argument)
    return argument


def _enlarge(pipe: Any) -> None:
    with suppress(OSError, AttributeError):  # refused beyond the user's limit; unknown outside Linux
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)


def work() -> None:
    """The worker's main: take calls until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: the parent decides when to end
    with suppress(OSError):
        os.nice(NICE)
    calls = os.fdopen(os.dup(0), "rb")
    results = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # what somebody prints must not end up between the results
    with suppress(EOFError, BrokenPipeError):
        _serve(calls, results)


def _serve(calls: BinaryIO, results: BinaryIO) -> None:
    subject: object = None
    failed: Exception | None = None
    try:
        make, arguments = pickle.load(calls)
        subject = make(*arguments)
    except EOFError:
        raise
    except Exception as error:
        failed = error
    while True:
        large = [calls.read(size) for size in pickle.load(calls)]
        method, arguments, named = pickle.load(calls, buffers=large)
        del large
        answer = outcome(subject, failed, method, arguments, named)
        del arguments, named
        results.write(answer)
        results.flush()
        del answer


def outcome(
    subject: object, failed: Exception | None, method: str, arguments: tuple[object, ...], named: dict[str, object]
) -> bytes:
    """The pickled result and error of one call; `failed`: why there is no object to be called."""
    try:
        if failed is not None:
            raise failed
        return pickle.dumps((getattr(subject, method)(*arguments, **named), None), pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        try:
            pickled = pickle.dumps((None, error))
            pickle.loads(pickled)  # some exceptions can be pickled, but not unpickled
        except Exception:
            pickled = pickle.dumps((None, RuntimeError(f"{type(error).__name__}: {error}")))
        return pickled
