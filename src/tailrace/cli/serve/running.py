"""Run one broker in this process: event loop, logging, signals and the ready line.

The order matters: nothing is printed to standard output before clients can connect, and if the Kafka door cannot open
its port, the node is stopped, so that the next start finds a cleanly closed data directory.
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

from tailrace.broker.node import CannotStart, Node
from tailrace.cli.failure import Failed
from tailrace.doors.kafka import open_door
from tailrace.log.directory.state_file import Unreadable
from tailrace.model.settings import Settings
from tailrace.ports import Listener, system_ports

T = TypeVar("T")

SWITCH_INTERVAL_S: Final = 0.0005  # with Python's 5 ms, a thread that returns from fsync waits for a busy event loop
SAME_REQUEST_S: Final = 1.0  # `timeout` and process groups deliver one stop signal twice
UNREADABLE_ADVICE: Final = (
    "\nRestore that file from a copy of the directory, or use another directory "
    "with --data-dir;\n`tailrace log dump` shows the records in the logs."
)
logger = logging.getLogger("tailrace.serve")


def run_broker(settings: Settings, *, until_eof: bool = False) -> int:
    if os.path.exists(settings.data_dir) and not os.path.isdir(settings.data_dir):
        raise Failed(
            f"cannot start: {settings.data_dir} is a file, not a directory.\nName a directory with --data-dir."
        )
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    _allow_many_descriptors()
    log_to_stderr(settings.log_level)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_serve(settings, until_eof))
    return 0


def _allow_many_descriptors() -> None:
    """Raise the limit of open files to its maximum: connections and segments need many descriptors."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


async def _serve(settings: Settings, until_eof: bool) -> None:
    ports = system_ports()
    stop = _Stop()
    ports.host.on_stop(stop.request)
    if until_eof:
        _at_eof(stop.request)
    node = Node(ports, settings)
    node.failed.add_done_callback(lambda _: stop.requested.set())
    try:
        await node.start()
    except CannotStart as error:
        advice = UNREADABLE_ADVICE if isinstance(error.__cause__, Unreadable) else ""
        raise Failed(f"cannot start: {error}{advice}") from None
    try:
        listener = await _unless(stop.requested, _listen(node, settings))  # may take long: it waits for the cluster
        if listener is not None:
            _announce_ready(node, listener, settings)
            await stop.requested.wait()
            listener.close()
    finally:
        await node.stop()
    if node.failed.done():
        raise Failed(f"the broker failed and stopped: {node.failed.exception()!r}. The log above has the details.")
    logger.info("stopped")


def _announce_ready(node: Node, listener: Listener, settings: Settings) -> None:
    where = address(node.advertised_host, listener.port)
    logger.info("broker %d is up at %s, data in %s, fsync %s", node.broker_id, where, settings.data_dir, settings.fsync)
    print(f"ready kafka={where} peer={address(node.advertised_host, node.peer_port)}", flush=True)


async def _unless(requested: asyncio.Event, work: Coroutine[Any, Any, T]) -> T | None:
    """The result of the work; None if a stop is requested first, which cancels the work."""
    working, stopping = asyncio.ensure_future(work), asyncio.ensure_future(requested.wait())
    await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if working.done():
        return working.result()
    working.cancel()
    await asyncio.wait((working,))
    return None


async def _listen(node: Node, settings: Settings) -> Listener:
    try:
        return await open_door(node)
    except OSError as error:
        raise Failed(f"cannot start: {_listen_error(error, settings)}") from None


def _listen_error(error: OSError, settings: Settings) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"port {settings.kafka_port} on {settings.host} is in use by another program.\n"
            "Stop it, or give this broker another port with --kafka-port (0 picks a free one)."
        )
    if error.errno == errno.EACCES:
        return (
            f"this user may not listen on port {settings.kafka_port} of {settings.host}.\n"
            "Choose a port above 1023 with --kafka-port."
        )
    reason = error.strerror or str(error)
    return f"cannot listen on {settings.host}: {reason}.\nName an address of this machine with --host."


class _Stop:
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


def _at_eof(callback: Callable[[], None]) -> None:
    # In a thread, because standard input may be a file, which an event loop cannot watch.
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
    """`2026-11-15 10:42:07.123 info    log.recovery: …`: time, level, module, message."""

    default_msec_format = "%s.%03d"

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        where = record.name.removeprefix("tailrace.")
        return f"{self.formatTime(record)} {record.levelname.lower():<8}{where}: {record.message}"


def log_to_stderr(level: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_OneLine())
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)
