"""The broker under fire, and what can be seen of it from outside: memory, sockets, its log, its data."""

import asyncio
import os
import re
from pathlib import Path
from typing import Any, Final

from tailrace.log.directory.inspect import Problem, verify
from tailrace.ports import system_ports
from tailrace.testing import Broker

SETTLE_MAX_S: Final = 20.0
SETTINGS: Final[dict[str, Any]] = {
    "fsync": "never",
    "log_segment_bytes": 256 * 1024,
    "log_retention_bytes": 2 * 1024 * 1024,
    "log_retention_check_interval_ms": 500,
    "log_flush_offset_checkpoint_interval_ms": 1000,
}


def make_broker() -> Broker:
    return Broker(**SETTINGS)


def resident_bytes(pid: int) -> int:
    return _status(pid, "VmRSS")


def peak_bytes(pid: int) -> int:
    return _status(pid, "VmHWM")


def _status(pid: int, name: str) -> int:
    found = re.search(rf"{name}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def sockets(pid: int) -> int:
    """How many sockets the process holds: its listener, its connections, and what its loop needs."""
    return _descriptors(pid, "socket:")


def descriptors(pid: int) -> int:
    return _descriptors(pid, "")


def _descriptors(pid: int, begins: str) -> int:
    count = 0
    for path in Path(f"/proc/{pid}/fd").iterdir():
        try:
            count += os.readlink(path).startswith(begins)
        except OSError:  # closed meanwhile
            continue
    return count


async def until_sockets(pid: int, at_most: int) -> None:
    """Wait until the broker has let go of the connections that its clients left."""
    async with asyncio.timeout(SETTLE_MAX_S):
        while sockets(pid) > at_most:  # noqa: ASYNC110 another process's sockets ring no bell
            await asyncio.sleep(0.02)


def failures_in(log: str) -> list[str]:
    """What a broker must never write, however bad its clients are."""
    entries = re.split(r"^(?=\d{4}-\d\d-\d\d )", log, flags=re.MULTILINE)
    return [entry for entry in entries if "Traceback" in entry or re.match(r"\S+ \S+ (error|critical) ", entry)]


def damage_in(data_dir: Path) -> list[Problem]:
    """What is wrong with the partitions on disk, but for records that were garbage when they came: those we keep."""
    disk = system_ports().disk
    folders = sorted(path for path in data_dir.iterdir() if path.is_dir())
    assert folders
    problems = [problem for folder in folders for problem in verify(disk, str(folder)).problems]
    return [problem for problem in problems if not problem.reason.startswith("records cannot be decoded")]
