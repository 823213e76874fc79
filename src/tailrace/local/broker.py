"""One broker as a process of this machine: `tailrace serve`, started, watched and stopped.

    with LocalBroker(data_dir="data") as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap})

Settings: the broker has the defaults of `tailrace serve`, but for a free port (`kafka_port=0`), and the settings that
the caller gives. Variables named TAILRACE_… of this process are not passed on.

Lifetime: a broker ends with the process that started it. It reads its standard input (`--until-eof`), a pipe whose
other end this process holds, and stops when that end is closed, which the system does however this process dies.

Starting and stopping have two halves each (`launch` and `wait_until_ready`, `ask_to_stop` and `wait_until_stopped`), so
that the brokers of a cluster start or stop at the same time.
"""

import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import IO, ClassVar, Final, Self

from tailrace.local.process_log import LogFile, LogLines, ProcessLog, last_lines
from tailrace.model.settings import load, variable_name

START_TIMEOUT_S: Final = 20.0
STOP_TIMEOUT_S: Final = 20.0
READY_PREFIX: Final = "ready kafka="
PORTS: Final = MappingProxyType(
    {"kafka": "kafka_port", "http": "http_port", "grpc": "grpc_port", "dmqp": "dmqp_port"}
)  # by listener, the setting


class BrokerFailed(RuntimeError):
    """The broker did not start, or did not stop cleanly; the message ends with the last lines of its log."""


class LocalBroker:
    """A broker process. `settings` are those of `tailrace serve`, spelled as in YAML: `LocalBroker(num_partitions=4)`.

    Without `data_dir` the data is in a temporary directory, which `close` removes; a given directory is kept. `kill`
    and `stop` leave the data alone, so that `restart` finds it. `on_log` gets each line of the log when it is written.
    """

    DEFAULTS: ClassVar[Mapping[str, object]] = MappingProxyType({})  # instead of those of `tailrace serve`

    def __init__(
        self,
        *,
        data_dir: str | os.PathLike[str] | None = None,
        on_log: Callable[[str], None] | None = None,
        **settings: object,
    ) -> None:
        settings = {**self.DEFAULTS, **settings}
        self.settings = load({}, {}, settings)  # refuses a wrong name or value here, in the caller's own traceback
        self._settings = settings
        self._folder = tempfile.TemporaryDirectory(prefix="tailrace-", ignore_cleanup_errors=True)
        self._log: ProcessLog = LogFile(Path(self._folder.name) / "broker.log") if on_log is None else LogLines(on_log)
        self._process: subprocess.Popen[bytes] | None = None
        self.data_dir = Path(self._folder.name) / "data" if data_dir is None else Path(data_dir)
        self.endpoints: dict[str, str] = {}  # HOST:PORT of each listener, known once the broker has started
        self.variables: dict[str, str] = {}  # of its environment, beside its settings; used from the next start on

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = f"at {self.bootstrap}, process {self._process.pid}" if self._process is not None else "not running"
        return f"<{type(self).__name__} {state}, data in {self.data_dir}>"

    @property
    def bootstrap(self) -> str:
        """HOST:PORT of the Kafka listener; empty before the first start."""
        return self.endpoints.get("kafka", "")

    @property
    def port(self) -> int:
        return self.port_of("kafka")

    def port_of(self, listener: str) -> int:
        """The port of a listener, such as http, of a broker that has started with it."""
        return int(self.endpoints[listener].rpartition(":")[2])

    @property
    def pid(self) -> int:
        return self._running().pid

    @property
    def is_running(self) -> bool:
        """Whether the process exists; one that was paused (SIGSTOP) does."""
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> str:
        """What the broker wrote to standard error, over all restarts; with `on_log` only the last lines."""
        return self._log.text()

    def start(self, *, timeout_s: float = START_TIMEOUT_S) -> None:
        """Start the broker and wait until clients can connect."""
        self.launch()
        self.wait_until_ready(timeout_s=timeout_s)

    def launch(self) -> None:
        """Start the process without waiting until it is ready."""
        if self._process is not None:
            raise BrokerFailed(f"the broker runs already, as process {self._process.pid}")
        with self._log.open() as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tailrace", "serve", "--until-eof"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=self._environment(),
                # A process group of its own: Ctrl-C in the terminal reaches this process alone, which stops the broker.
                # The same session: a paused broker cannot see that its input ended, but an orphaned process group
                # with paused members gets SIGHUP and SIGCONT from the system.
                process_group=0,
            )

    def wait_until_ready(self, *, timeout_s: float = START_TIMEOUT_S) -> None:
        """Wait until clients can connect to the broker that was launched; one that is not ready in time is killed."""
        try:
            self.endpoints = self._ready_addresses(self._running(), timeout_s)
        except BaseException:
            self.kill()
            raise

    def stop(self, *, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Ask the broker to stop, as Ctrl-C does, and wait until it has. Does nothing when it is not running."""
        self.ask_to_stop()
        self.wait_until_stopped(timeout_s=timeout_s)

    def ask_to_stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            self._process.send_signal(signal.SIGCONT)  # a paused process gets its SIGTERM when it continues

    def wait_until_stopped(self, *, timeout_s: float = STOP_TIMEOUT_S) -> None:
        if self._process is None:
            return
        try:
            code = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise BrokerFailed(f"the broker did not stop in time and was killed.{last_lines(self.log)}") from None
        self._forget()
        if code != 0:
            raise BrokerFailed(f"the broker ended with exit code {code}.{last_lines(self.log)}")

    def kill(self) -> None:
        """End the broker at once, as a crash does: SIGKILL."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        self._forget()

    def wait(self) -> int:
        """Wait until the broker ends by itself; its exit code."""
        code = self._running().wait()
        self._forget()
        return code

    def restart(self, *, same_port: bool = True) -> None:
        """Stop the broker if it runs, and start it on the same data, by default at the same addresses."""
        self.stop()
        for listener, setting in PORTS.items():
            if listener in self.endpoints:
                self._settings[setting] = self.port_of(listener) if same_port else 0
        self.start()

    def close(self) -> None:
        """Stop the broker and remove what was temporary."""
        try:
            self.stop()
        finally:
            self._folder.cleanup()

    def _running(self) -> "subprocess.Popen[bytes]":
        if self._process is None:
            raise BrokerFailed("the broker is not running")
        return self._process

    def _environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("TAILRACE_")}
        settings = {"kafka_port": 0, "data_dir": str(self.data_dir)} | self._settings
        return inherited | {variable_name(name): str(value) for name, value in settings.items()} | self.variables

    def _ready_addresses(self, process: "subprocess.Popen[bytes]", timeout_s: float) -> dict[str, str]:
        assert process.stdout is not None
        deadline = time.monotonic() + timeout_s
        line = _read_line(process.stdout, deadline)
        if line.startswith(READY_PREFIX):
            return dict(one.split("=", 1) for one in line.split()[1:])
        try:
            code = process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise BrokerFailed(f"the broker was not ready in time and was killed.{last_lines(self.log)}") from None
        raise BrokerFailed(f"the broker did not start: exit code {code}.{last_lines(self.log)}")

    def _forget(self) -> None:
        process, self._process = self._process, None
        for pipe in (process.stdin, process.stdout) if process else ():
            if pipe is not None:
                pipe.close()


def _read_line(stream: IO[bytes], deadline: float) -> str:
    """One line, or the part of it that was written before the end of the stream or the deadline."""
    got = b""
    waiting = select.poll()  # select.select refuses descriptors above 1023, and a test process may have many
    waiting.register(stream, select.POLLIN)
    while not got.endswith(b"\n"):
        ready = waiting.poll(max(0.0, deadline - time.monotonic()) * 1000)
        more = os.read(stream.fileno(), 4096) if ready else b""
        if not more:
            break
        got += more
    return got.decode(errors="replace").strip()
