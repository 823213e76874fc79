"""What all servers share: the event loop, the log on standard error, and requests to stop."""

import asyncio
import logging
import os
import resource
import sys
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")

SWITCH_INTERVAL_S: Final = 0.0005  # with Python's 5 ms, a thread that returns from fsync waits for a busy event loop
SAME_REQUEST_S: Final = 1.0  # `timeout` and process groups deliver one stop signal twice
logger: Final = logging.getLogger("tailrace.serve")


def run_server(work: Coroutine[Any, Any, None], log_level: str) -> None:
    """Run a server's coroutine on a loop of its own."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    _allow_many_descriptors()
    log_to_stderr(log_level)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(work)


def _allow_many_descriptors() -> None:
    """Raise the limit of open files to its maximum: connections and segments need many descriptors."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


async def unless(requested: asyncio.Event, work: Coroutine[Any, Any, T]) -> T | None:
    """The result of the work; None if a stop is requested first, which cancels the work."""
    working, stopping = asyncio.ensure_future(work), asyncio.ensure_future(requested.wait())
    await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if working.done():
        return working.result()
    working.cancel()
    await asyncio.wait((working,))
    return None


class Stop:
    """Requests to stop, by a signal or the end of standard input. A second request ends the process at once."""

    def __init__(self) -> None:
        self.requested = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._graceful_until = 0.0

    def request(self) -> None:
        if not self.requested.is_set():
            logger.info("stopping")
            self._graceful_until = self._loop.time() + SAME_REQUEST_S
            self.requested.set()
        elif self._loop.time() > self._graceful_until:
            print("tailrace: second stop request: exiting at once; the next start will recover.", file=sys.stderr)
            os._exit(1)


class Reloading:
    """Requests to load the certificates again, by SIGHUP. One that comes during the start is remembered."""

    def __init__(self) -> None:
        self._is_requested = False
        self._reload: Callable[[], None] | None = None

    def request(self) -> None:
        if self._reload is not None:
            self._reload()
        else:
            logger.info("SIGHUP: this process will load the certificates again when it is up")
            self._is_requested = True

    def begin(self, reload: Callable[[], None]) -> None:
        self._reload = reload
        if self._is_requested:
            reload()


def at_eof(callback: Callable[[], None]) -> None:
    # In a thread, because standard input may be a file, which an event loop cannot watch.
    loop = asyncio.get_running_loop()

    def watch() -> None:
        while os.read(0, 4096):
            pass
        loop.call_soon_threadsafe(callback)

    threading.Thread(target=watch, name="stdin", daemon=True).start()


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


class _OneLine(logging.Formatter):
    """`2026-11-15 10:42:07.123 info    log.recovery: …`: time, level, module, message."""

    default_msec_format = "%s.%03d"

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        where = record.name.removeprefix("tailrace.")
        return f"{self.formatTime(record)} {record.levelname.lower():<8}{where}: {record.message}"


def log_to_stderr(level: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_OneLine())
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)
