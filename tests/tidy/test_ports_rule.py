"""Of the rooms of a broker, only ports/ touches the world: each way out is seen."""

import tomllib
from pathlib import Path

import pytest

from checks.ports import EXEMPT_ROOMS, ROOMS_ON_PORTS, bypasses_ports
from tests.tidy.planted import planted

root = Path(__file__).parents[2]

FORBIDDEN_MODULES = (
    "time random uuid secrets socket threading concurrent.futures uvloop multiprocessing tempfile subprocess "
    "shutil glob fcntl mmap select selectors signal sched _thread"
)


@pytest.mark.parametrize("module", FORBIDDEN_MODULES.split())
def test_a_forbidden_module_is_found(module: str) -> None:
    assert bypasses_ports(planted(f"import {module}"))


@pytest.mark.parametrize(
    "code",
    [
        "from time import monotonic",
        "import time as t",
        "import concurrent.futures",
        "from concurrent.futures import Future",
        "from concurrent import futures",
        "def f():\n    import socket",
        "open('x')",
        "import io\nio.open('x')",
        "from pathlib import Path",
        "import pathlib\npathlib.Path('x').read_text()",
        "import os\nos.open('x', 0)",
        "import os\nos.path.exists('x')",
        "import os as o\no.urandom(8)",
        "from os import environ",
        "from os import path\npath.getsize('x')",
        "from os.path import exists",
        "import datetime\ndatetime.datetime.now()",
        "from datetime import datetime, UTC\ndatetime.now(UTC)",
        "from asyncio import to_thread",
        "import asyncio\nasyncio.get_running_loop().run_in_executor(None, print)",
        "loop.create_server(factory)",
    ],
)
def test_a_forbidden_name_is_found(code: str) -> None:
    assert len(bypasses_ports(planted(code))) >= 1


@pytest.mark.parametrize(
    "code",
    [
        "import os\nos.path.join('a', 'b')",
        "from os.path import basename",
        "from pathlib import PurePosixPath",
        "from datetime import datetime, timedelta\ndatetime.fromtimestamp(1)",
        "import asyncio\nasyncio.get_running_loop().call_later(1, print)",
        "time = clock.monotonic()\nrandom.below(3)",
        "disk.open('x')",
        "import timeit_of_ours",
    ],
)
def test_pure_names_are_allowed(code: str) -> None:
    assert bypasses_ports(planted(code)) == []


@pytest.mark.parametrize("room", ROOMS_ON_PORTS)
def test_every_room_of_a_broker_is_bound(room: str) -> None:
    assert bypasses_ports(planted("import time", f"src/tailrace/{room}/deep/er.py"))


@pytest.mark.parametrize(
    "path",
    [
        "src/tailrace/ports/clock.py",
        "src/tailrace/local/broker.py",
        "src/tailrace/cli/main.py",
        "src/tailrace/testing/cluster.py",
        "tests/unit/test_x.py",
    ],
)
def test_ports_and_what_does_not_run_in_a_broker_are_exempt(path: str) -> None:
    assert bypasses_ports(planted("import subprocess, time", path)) == []


def test_every_room_is_bound_or_exempt() -> None:
    """A room that the layers list, and that this rule does not know, would be exempt without anybody's decision."""
    contracts = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(one["layers"] for one in contracts if one["name"] == "Nothing imports upwards")
    assert sorted(room.strip("()") for room in layers) == sorted([*ROOMS_ON_PORTS, *EXEMPT_ROOMS])


def test_a_finding_says_where_and_what_to_do() -> None:
    (finding,) = bypasses_ports(planted("\n\nimport random"))
    assert str(finding).startswith("src/tailrace/log/planted.py:3: uses random\n")
    assert "ports.randomness" in finding.remedy
