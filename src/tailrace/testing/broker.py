"""A real broker for tests: its own process, a free port, a directory of its own.

    with Broker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap})

It is the program that people run, `tailrace serve`, so what a test sees is what they get. The broker outlives nobody:
it reads its standard input, a pipe whose other end this process holds, and stops when that end is closed, which
the system does whichever way this process dies. Variables named TAILRACE_… are not passed on: a test's broker is
what the test says; only a group's first members do not wait for others, unless it says so.

Starting and stopping come in two halves, so that the brokers of a cluster can do either at the same time.
"""

import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import IO, Final, Self

from tailrace.model.settings import load, variable_name
from tailrace.testing.broker_log import BrokerLog, LogFile, LogLines, last_lines

START_TIMEOUT_S: Final = 20.0
STOP_TIMEOUT_S: Final = 20.0
READY_PREFIX: Final = "ready kafka="

# Tests wait for groups: they begin at once, and members hear soon what changed.
QUICK_GROUPS: Final = MappingProxyType(
    {"group_initial_rebalance_delay_ms": 0, "group_consumer_heartbeat_interval_ms": 500}
)


class BrokerFailed(RuntimeError):
    """The broker did not start, or did not stop; the message ends with the last lines of its log."""


class Broker:
    """A broker process. `settings` are those of `tailrace serve`, spelled as in YAML: `Broker(num_partitions=4)`.

    Without `data_dir` it lives in a temporary directory that goes away with it; a given one is kept. `kill` and
    `stop` leave the directory alone, so that `restart` finds it. `on_log` gets each line of its log as it comes.
    """

    def __init__(
        self,
        *,
        data_dir: str | os.PathLike[str] | None = None,
        on_log: Callable[[str], None] | None = None,
        **settings: object,
    ) -> None:
        load({}, {}, {**QUICK_GROUPS, **settings})  # a wrong name or value shows here, in the test's own traceback
        self._settings = settings
        self._folder = tempfile.TemporaryDirectory(prefix="tailrace-", ignore_cleanup_errors=True)
        self._log: BrokerLog = LogFile(Path(self._folder.name) / "broker.log") if on_log is None else LogLines(on_log)
        self._process: subprocess.Popen[bytes] | None = None
        self.is_paused = False
        self.data_dir = Path(self._folder.name) / "data" if data_dir is None else Path(data_dir)
        self.bootstrap = ""  # HOST:PORT, known once it has started
        self.variables: dict[str, str] = {}  # of its environment, besides its settings; they count from the next start

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = f"at {self.bootstrap}, process {self._process.pid}" if self._process is not None else "not running"
        return f"<Broker {state}, data in {self.data_dir}>"

    @property
    def port(self) -> int:
        return int(self.bootstrap.rpartition(":")[2])

    @property
    def pid(self) -> int:
        return self._running().pid

    @property
    def is_running(self) -> bool:
        """Whether its process lives, paused or not."""
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> str:
        """All it wrote to standard error, over all restarts; with `on_log` only the last lines."""
        return self._log.text()

    def start(self, *, timeout_s: float = START_TIMEOUT_S) -> None:
        """Start it and wait until clients can connect."""
        self.launch()
        self.wait_until_ready(timeout_s=timeout_s)

    def launch(self) -> None:
        """Start it, and wait for nothing."""
        if self._process is not None:
            raise BrokerFailed(f"the broker runs already, as process {self._process.pid}")
        with self._log.open() as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tailrace", "serve", "--until-eof"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=self._environment(),
                # Ctrl-C is for the test run, which then stops us. In its session still: so the system ends
                # even a paused broker when the test run dies, which could not see that its input has ended.
                process_group=0,
            )

    def wait_until_ready(self, *, timeout_s: float = START_TIMEOUT_S) -> None:
        """Wait until clients can connect to the broker that was launched."""
        try:
            self.bootstrap = self._ready_address(self._running(), timeout_s)
        except BaseException:
            self.kill()
            raise

    def stop(self, *, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Ask it to stop, as Ctrl-C does, and wait until it has; nothing happens when it does not run."""
        self.ask_to_stop()
        self.wait_until_stopped(timeout_s=timeout_s)

    def ask_to_stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            self._process.send_signal(signal.SIGCONT)  # a paused one would not hear it

    def wait_until_stopped(self, *, timeout_s: float = STOP_TIMEOUT_S) -> None:
        if self._process is None:
            return
        try:
            code = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise BrokerFailed(f"the broker did not stop in time, and was killed.{last_lines(self.log)}") from None
        self._forget()
        if code != 0:
            raise BrokerFailed(f"the broker ended with exit code {code}.{last_lines(self.log)}")

    def kill(self) -> None:
        """End it at once, as a crash would: SIGKILL."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        self._forget()

    def pause(self) -> None:
        """Let it stand still, as a machine that hangs does: SIGSTOP. When this returns, it does."""
        self._running().send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        self.is_paused = True

    def resume(self) -> None:
        """Let a paused one go on."""
        self._running().send_signal(signal.SIGCONT)
        self.is_paused = False

    def wait(self) -> int:
        """Wait until it ends by itself; its exit code."""
        code = self._running().wait()
        self._forget()
        return code

    def restart(self, *, same_port: bool = True) -> None:
        """Stop it if it runs and start it again on the same data, by default at the same address."""
        self.stop()
        if same_port and self.bootstrap:
            self._settings["kafka_port"] = self.port
        elif not same_port:
            self._settings["kafka_port"] = 0
        self.start()

    def close(self) -> None:
        """Stop it and remove what was temporary."""
        try:
            self.stop()
        finally:
            self._folder.cleanup()

    def _running(self) -> "subprocess.Popen[bytes]":
        if self._process is None:
            raise BrokerFailed("the broker does not run")
        return self._process

    def _environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("TAILRACE_")}
        told = {"kafka_port": 0, "data_dir": str(self.data_dir)} | dict(QUICK_GROUPS) | self._settings
        return inherited | {variable_name(name): str(value) for name, value in told.items()} | self.variables

    def _ready_address(self, process: "subprocess.Popen[bytes]", timeout_s: float) -> str:
        assert process.stdout is not None
        deadline = time.monotonic() + timeout_s
        line = _read_line(process.stdout, deadline)
        if line.startswith(READY_PREFIX):
            return line.removeprefix(READY_PREFIX).split()[0]
        try:
            code = process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise BrokerFailed(f"the broker was not ready in time, and was killed.{last_lines(self.log)}") from None
        raise BrokerFailed(f"the broker did not start: exit code {code}.{last_lines(self.log)}")

    def _forget(self) -> None:
        process, self._process = self._process, None
        self.is_paused = False
        for pipe in (process.stdin, process.stdout) if process else ():
            if pipe is not None:
                pipe.close()


def _read_line(stream: IO[bytes], deadline: float) -> str:
    """One line, or what came of it before the end or the deadline."""
    got = b""
    waiting = select.poll()  # select.select knows no descriptor above 1023, and a test process may have many
    waiting.register(stream, select.POLLIN)
    while not got.endswith(b"\n"):
        ready = waiting.poll(max(0.0, deadline - time.monotonic()) * 1000)
        more = os.read(stream.fileno(), 4096) if ready else b""
        if not more:
            break
        got += more
    return got.decode(errors="replace").strip()
