"""A client whose toolchain is missing is not there, and says what is missing; nothing is fetched to find out."""

from pathlib import Path

import pytest

from benchmarks.fetched import Missing
from tests.interop import toolchains
from tests.interop.drivers import DRIVERS
from tests.interop.drivers.program import Program

programs = [driver for driver in DRIVERS if issubclass(driver, Program)]


@pytest.fixture(autouse=True)
def empty(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Nothing on the PATH, and nothing in the cache."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("driver", programs, ids=lambda driver: driver.name)
def test_says_which_tool_is_missing(driver: type[Program], empty: Path) -> None:
    assert driver.version() is None
    assert f"`{driver.tools[0]}` is not on the PATH" in driver.why_missing()
    with pytest.raises(Missing, match="is not on the PATH"):
        driver("127.0.0.1:1")
    assert list(empty.iterdir()) == []


def test_a_client_is_there_when_its_tools_are(empty: Path) -> None:
    for tool in ("go", "node", "npm"):
        (empty / tool).write_text("#!/bin/sh\n")
        (empty / tool).chmod(0o755)
    there = {driver.name: driver.version() for driver in programs if driver.version() is not None}
    assert there == {"franz-go": toolchains.go_version(), "kafkajs": toolchains.node_version()}
