"""A real broker for tests: its own process, a free port, a directory of its own.

    with Broker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap})

It is the program that people run, `tailrace serve`, so what a test sees is what they get. The broker outlives nobody:
it reads its standard input, a pipe whose other end this process holds, and stops when that end is closed, which
the system does whichever way this process dies. Variables named TAILRACE_… are not passed on: a test's broker is
what the test says.
"""

import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO, Self

from tailrace.model.settings import load, variable_name

start_timeout_s = 20.0
stop_timeout_s = 20.0
log_tail_lines = 20
ready_prefix = "ready kafka="


class BrokerFailed(RuntimeError):
    """The broker did not start, or did not stop; the message ends with the last lines of its log."""


class Broker:
    """A broker process. `settings` are those of `tailrace serve`, spelled as in YAML: `Broker(num_partitions=4)`.

    Without `data_dir` it lives in a temporary directory that goes away with it; a given one is kept. `kill` and
    `stop` leave the directory alone, so that `restart` finds it.
    """

    def __init__(self, *, data_dir: str | os.PathLike[str] | None = None, **settings: object) -> None:
        load({}, {}, settings)  # a wrong name or value shows here, in the test's own traceback
        self._settings = settings
        self._folder = tempfile.TemporaryDirectory(prefix="tailrace-", ignore_cleanup_errors=True)
        self._log_path = Path(self._folder.name) / "broker.log"
        self._process: subprocess.Popen[bytes] | None = None
        self.data_dir = Path(self._folder.name) / "data" if data_dir is None else Path(data_dir)
        self.bootstrap = ""  # HOST:PORT, known once it has started

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
        if self._process is None:
            raise BrokerFailed("the broker does not run")
        return self._process.pid

    @property
    def log(self) -> str:
        """All it wrote to standard error, over all restarts."""
        return self._log_path.read_text(errors="replace") if self._log_path.exists() else ""

    def start(self, *, timeout_s: float = start_timeout_s) -> None:
        """Start it and wait until clients can connect."""
        if self._process is not None:
            raise BrokerFailed(f"the broker runs already, as process {self._process.pid}")
        with open(self._log_path, "ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tailrace", "serve", "--until-eof"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=self._environment(),
                start_new_session=True,  # Ctrl-C is for the test run, which then stops us
            )
        try:
            self.bootstrap = self._wait_until_ready(self._process, timeout_s)
        except BaseException:
            self.kill()
            raise

    def stop(self, *, timeout_s: float = stop_timeout_s) -> None:
        """Ask it to stop, as Ctrl-C does, and wait until it has; nothing happens when it does not run."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            code = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise BrokerFailed(f"the broker did not stop within {timeout_s:g} s.{self._tail()}") from None
        self._forget()
        if code != 0:
            raise BrokerFailed(f"the broker ended with exit code {code}.{self._tail()}")

    def kill(self) -> None:
        """End it at once, as a crash would: SIGKILL."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        self._forget()

    def wait(self) -> int:
        """Wait until it ends by itself; its exit code."""
        if self._process is None:
            raise BrokerFailed("the broker does not run")
        code = self._process.wait()
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

    def _environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("TAILRACE_")}
        told = {"kafka_port": 0, "data_dir": str(self.data_dir)} | self._settings
        return inherited | {variable_name(name): str(value) for name, value in told.items()}

    def _wait_until_ready(self, process: "subprocess.Popen[bytes]", timeout_s: float) -> str:
        assert process.stdout is not None
        deadline = time.monotonic() + timeout_s
        line = _read_line(process.stdout, deadline)
        if line.startswith(ready_prefix):
            return line.removeprefix(ready_prefix).split()[0]
        try:
            code = process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise BrokerFailed(f"the broker was not ready within {timeout_s:g} s.{self._tail()}") from None
        raise BrokerFailed(f"the broker did not start: exit code {code}.{self._tail()}")

    def _tail(self) -> str:
        lines = self.log.splitlines()[-log_tail_lines:]
        return "\nIts log ends:\n  " + "\n  ".join(lines) if lines else " Its log is empty."

    def _forget(self) -> None:
        process, self._process = self._process, None
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
