"""The page of the REST API is what happens: its commands run and print what it says, its table is whole."""

import os
import re
import subprocess
import time
from functools import partial
from pathlib import Path

import pytest

from tailrace.doors.http.rest.kinds import all_kinds
from tailrace.testing import Broker
from tests.interop.rest_door import CURL, RestDoor

PAGE = (Path(__file__).parents[2] / "docs" / "rest.md").read_text()
ANY = "…"
SHOWN_TIMEOUT_S = 15.0


def commands() -> list[tuple[str, str]]:
    """Each command of the page, and what it prints."""
    found = []
    for block in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL):
        for part in block.split("$ ")[1:] if block.startswith("$ ") else ():
            command, _, output = part.partition("\n")
            found.append((command, output))
    return found


def as_pattern(output: str) -> str:
    return "".join(".*" if one == ANY else re.escape(one) for one in output.rstrip("\n"))


def shows(done: subprocess.CompletedProcess[str], output: str) -> bool:
    return re.fullmatch(as_pattern(output), done.stdout.rstrip("\n"), re.DOTALL) is not None


def only_reads(command: str) -> bool:
    """Whether a reader of the page may repeat the command until what was asked for before is done."""
    return "=$(" not in command and " -X " not in command and "--json" not in command


@pytest.mark.foreign
@pytest.mark.skipif(CURL is None, reason="curl is not installed")
def test_the_commands_of_the_page_run(tmp_path: Path) -> None:
    assert len(commands()) > 20
    variables: dict[str, str] = {}
    with Broker(fsync="never") as broker, RestDoor(broker.bootstrap, broker=1) as door:
        for command, output in commands():
            assigned = re.match(r"([A-Z]+)=\$\(", command)
            run = command.replace("localhost:8001", f"127.0.0.1:{door.port}")
            if assigned is not None:
                run += f'; printf %s "${assigned[1]}"'
            environment = {**os.environ, **variables}
            shell = partial(subprocess.run, run, shell=True, cwd=tmp_path, env=environment, check=False)
            deadline = time.monotonic() + SHOWN_TIMEOUT_S
            done = shell(capture_output=True, text=True, timeout=60)
            while only_reads(command) and not shows(done, output) and time.monotonic() < deadline:
                done = shell(capture_output=True, text=True, timeout=60)
            if assigned is not None:
                assert done.stdout.startswith("1-0-"), (command, done)
                variables[assigned[1]] = done.stdout
            else:
                assert shows(done, output), (command, done)


def test_the_table_of_problems_is_whole() -> None:
    rows = [f"| {one.status} | `{one.slug}` | {one.title} |" for one in all_kinds()]
    table = PAGE.split("<!-- made from doors/http/rest/kinds.py -->")[1].split("<!-- end -->")[0]
    assert sorted(line for line in table.splitlines() if line.startswith("| ") and "`" in line) == sorted(rows)
