"""The ports rule: every way around ports/ is found (DESIGN, section 3)."""

import pytest

from checks.ports import bypasses_ports
from tests.tidy.planted import planted

FORBIDDEN_MODULES = (
    "time random uuid secrets socket threading concurrent.futures uvloop multiprocessing tempfile subprocess "
    "shutil glob fcntl mmap select selectors signal sched _thread"
)
ROOMS = "model records wire log raft cluster groups queues transactions security broker client doors"


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


@pytest.mark.parametrize("room", ROOMS.split())
def test_the_rule_applies_to_every_room_up_to_doors(room: str) -> None:
    assert bypasses_ports(planted("import time", f"src/tailrace/{room}/deep/er.py"))


@pytest.mark.parametrize("path", ["src/tailrace/ports/clock.py", "src/tailrace/cli/main.py", "tests/unit/test_x.py"])
def test_ports_and_the_rooms_above_the_doors_are_free(path: str) -> None:
    assert bypasses_ports(planted("import time", path)) == []


def test_a_finding_says_where_and_what_to_do() -> None:
    (finding,) = bypasses_ports(planted("\n\nimport random"))
    assert str(finding).startswith("src/tailrace/log/planted.py:3: uses random\n")
    assert "ports.randomness" in finding.remedy
