"""`tailrace … | head -1`: a reader that closes the pipe is no failure of the command."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tailrace.testing import Broker
from tests.unit.cli.program import DEADLINE_S, environment, run_tailrace

commands = (
    "--help", "serve --help", "settings", "settings --json", "topic describe t", "consume t --from-beginning --to-end",
    "log dump --data-dir {data}", "log dump --json --data-dir {data}", "bench --messages 10 --only produce",
)  # fmt: skip


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("closed") / "data"
    with Broker(fsync="never", data_dir=folder):
        return folder


@pytest.fixture(scope="module")
def filled(broker: Broker) -> Broker:
    """A broker with a message in topic `t`."""
    assert run_tailrace("produce", "t", stdin="a\n", bootstrap=broker.bootstrap).code == 0
    return broker


@pytest.mark.parametrize("command", commands)
def test_a_closed_pipe_is_no_failure(filled: Broker, data: Path, command: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    ran = subprocess.run(
        [sys.executable, "-m", "tailrace", *command.format(data=data).split()],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(TAILRACE_BOOTSTRAP=filled.bootstrap),
        timeout=DEADLINE_S,
    )
    os.close(writer)
    assert (ran.returncode, ran.stderr) == (0, "")
