"""Run one broker in this process: loop, log lines, signals, the ready line.

Order matters: nothing is printed to standard output before clients can connect, and a broker that could not open
its door stops its node again, so that the next start finds a clean data directory.
"""

import asyncio
import errno
import logging
import os
import resource
import sys
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from tailrace.broker.later_release import LaterRelease
from tailrace.broker.node import CannotStart, Node
from tailrace.cli.failure import Failed
from tailrace.doors.kafka import open_door
from tailrace.log.directory.state_file import Unreadable
from tailrace.model.settings import Settings
from tailrace.ports import Listener, system_ports

T = TypeVar("T")

SWITCH_INTERVAL_S: Final = 0.0005  # at Python's 5 ms a thread that comes back from an fsync waits behind a busy loop
SAME_WISH_S: Final = 1.0  # `timeout` and process groups deliver one wish to stop twice
UNREADABLE_ADVICE: Final = (
    "\nPut that file back from a copy of the directory, or give this broker another place "
    "with --data-dir;\n`tailrace log dump` shows what the logs hold."
)
logger = logging.getLogger("tailrace.serve")


def run_broker(settings: Settings, *, until_eof: bool = False) -> int:
    if os.path.exists(settings.data_dir) and not os.path.isdir(settings.data_dir):
        raise Failed(f"cannot start: {settings.data_dir} is a file, not a directory.\nGive one with --data-dir.")
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    _allow_many_descriptors()
    log_to_stderr(settings.log_level)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_serve(settings, until_eof))
    return 0


def _allow_many_descriptors() -> None:
    """Connections and files share the process's descriptors; systems allow many more than they give at first."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


async def _serve(settings: Settings, until_eof: bool) -> None:
    ports = system_ports()
    stop = _Stop()
    ports.host.on_stop(stop.ask)
    if until_eof:
        _at_eof(stop.ask)
    node = Node(ports, settings)
    node.failed.add_done_callback(lambda _: stop.asked.set())
    try:
        await node.start()
    except CannotStart as error:
        advice = UNREADABLE_ADVICE if isinstance(error.__cause__, Unreadable) else ""
        raise Failed(f"cannot start: {error}{advice}") from None
    try:
        listener = await _unless(stop.asked, _listen(node, settings))  # it may wait for long until it knows its cluster
        if listener is not None:
            _say_ready(node, listener, settings)
            await stop.asked.wait()
            listener.close()
    finally:
        await node.stop()
    if node.failed.done():
        failure = node.failed.exception()
        if isinstance(failure, LaterRelease):
            raise Failed(f"stopped: {failure}.")
        raise Failed(f"the broker failed and stopped: {failure!r}. The log above says where.")
    logger.info("stopped")


def _say_ready(node: Node, listener: Listener, settings: Settings) -> None:
    where = address(node.advertised_host, listener.port)
    logger.info("broker %d is up at %s, data in %s, fsync %s", node.broker_id, where, settings.data_dir, settings.fsync)
    print(f"ready kafka={where} peer={address(node.advertised_host, node.peer_port)}", flush=True)


async def _unless(asked: asyncio.Event, work: Coroutine[Any, Any, T]) -> T | None:
    """What the work comes to; None, and it is given up, if somebody asks to stop before."""
    working, asking = asyncio.ensure_future(work), asyncio.ensure_future(asked.wait())
    await asyncio.wait((working, asking), return_when=asyncio.FIRST_COMPLETED)
    asking.cancel()
    if working.done():
        return working.result()
    working.cancel()
    await asyncio.wait((working,))
    return None


async def _listen(node: Node, settings: Settings) -> Listener:
    try:
        return await open_door(node)
    except CannotStart as error:
        raise Failed(f"cannot start: {error}") from None
    except OSError as error:
        raise Failed(f"cannot start: {_why_no_door(error, settings)}") from None


def _why_no_door(error: OSError, settings: Settings) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"port {settings.kafka_port} on {settings.host} is in use by another program.\n"
            "Stop it, or give this broker another port with --kafka-port (0 picks a free one)."
        )
    if error.errno == errno.EACCES:
        return (
            f"port {settings.kafka_port} on {settings.host} is not for this user.\n"
            "Choose one above 1023 with --kafka-port."
        )
    reason = error.strerror or str(error)
    return f"cannot listen on {settings.host}: {reason}.\nGive an address of this machine with --host."


class _Stop:
    """The wish to stop, from a signal or the end of standard input. Whoever asks again later does not want to wait."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._patient_until = 0.0

    def ask(self) -> None:
        if not self.asked.is_set():
            logger.info("stopping")
            self._patient_until = self._loop.time() + SAME_WISH_S
            self.asked.set()
        elif self._loop.time() > self._patient_until:
            print("tailrace: asked twice to stop: leaving at once; the next start will recover.", file=sys.stderr)
            os._exit(1)


def _at_eof(callback: Callable[[], None]) -> None:
    # A thread, because standard input may be a file, which no event loop can watch.
    loop = asyncio.get_running_loop()

    def watch() -> None:
        while os.read(0, 4096):
            pass
        loop.call_soon_threadsafe(callback)

    threading.Thread(target=watch, name="stdin", daemon=True).start()


def address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


class _OneLine(logging.Formatter):
    """`2026-11-15 10:42:07.123 info    log.recovery: …`: time, how bad, where, what."""

    default_msec_format = "%s.%03d"

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        where = record.name.removeprefix("tailrace.")
        return f"{self.formatTime(record)} {record.levelname.lower():<8}{where}: {record.message}"


def log_to_stderr(level: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_OneLine())
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)
