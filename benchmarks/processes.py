"""Servers and measuring clients as separate processes: start them, and read their resource use from the kernel."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from tailrace.model.limits import KiB

TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")
STOP_TIMEOUT_SECONDS: Final = 20.0
READY_WORD: Final = "ready "


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A running server: its first address and its process id."""

    name: str
    host: str
    port: int
    pid: int
    endpoints: Mapping[str, str] = field(default_factory=dict)  # HOST:PORT of each listener


class DidNotStart(Exception):
    """A server ended, or printed something else, instead of its ready line."""


def cpu_seconds(pid: int) -> float:
    """CPU seconds that a process and its children, running or waited for, have used so far."""
    stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    own = sum(map(int, stat[11:15])) / TICKS_PER_SECOND
    return own + sum(map(cpu_seconds, children(pid)))


def resident_bytes(pid: int) -> int:
    """Resident memory of a process and its children."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    own = next(int(line.split()[1]) * KiB for line in lines if line.startswith("VmRSS:"))
    return own + sum(map(resident_bytes, children(pid)))


def written_bytes(pid: int) -> int:
    """Bytes that a process has written so far, to files and sockets alike."""
    lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("wchar:"))


def children(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError):  # the thread may have ended, or the kernel may not list children
            found += map(int, (task / "children").read_text().split())
    return found


@contextmanager
def serving(name: str, command: list[str], *, log: Path) -> Iterator[Server]:
    """Run a server that prints `ready NAME=HOST:PORT …`, with its log in `log`; stop it at the end."""
    with log.open("ab") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
    try:
        assert process.stdout is not None
        endpoints = read_endpoints(process.stdout.readline(), name, log)
        host, _, port = next(iter(endpoints.values())).rpartition(":")
        yield Server(name=name, host=host, port=int(port), pid=process.pid, endpoints=endpoints)
    finally:
        stop(process)


def read_endpoints(line: str, name: str, log: Path) -> dict[str, str]:
    if not line.startswith(READY_WORD):
        tail = "\n".join(log.read_text().splitlines()[-10:])
        raise DidNotStart(f"{name} did not start: {line.strip() or 'the process ended'}\n{tail}")
    return dict(word.split("=", 1) for word in line.split()[1:])


def stop(process: "subprocess.Popen[Any]") -> None:
    process.terminate()
    try:
        process.wait(STOP_TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()


def measure(module: str, work: Any, environment: Mapping[str, str] | None = None) -> Any:
    """Run a measuring client in its own process: a dataclass is its argument, its result is JSON."""
    command = [sys.executable, "-m", module, json.dumps(asdict(work))]
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, check=False)
    if ran.returncode:
        raise DidNotStart(f"{module} failed with exit code {ran.returncode}; its output is above")
    return json.loads(ran.stdout)
