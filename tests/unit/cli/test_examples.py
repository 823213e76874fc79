"""The programs and files in `examples/` work."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tailrace.model.settings import load
from tailrace.testing import Broker
from tests.unit.cli.program import DEADLINE_S, environment

EXAMPLES = Path(__file__).parents[3] / "examples"


def run(*words: str) -> str:
    ran = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, cwd=EXAMPLES, env=environment(), timeout=DEADLINE_S
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_produce_and_consume(broker: Broker) -> None:
    assert "Lisbon: 17 °C" in run("produce_and_consume.py", broker.bootstrap)


def test_crash() -> None:
    assert "nothing that was confirmed is lost" in run("crash.py")


def test_a_users_tests() -> None:
    run("-m", "pytest", "-p", "no:cacheprovider", "test_orders.py")


def test_settings_in_a_file() -> None:
    settings = load(yaml.safe_load((EXAMPLES / "broker.yaml").read_text()), {}, {})
    assert settings.num_partitions == 3


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.*")), ids=lambda path: path.name)
def test_the_readme_names_every_example(path: Path) -> None:
    assert path.name == "README.md" or f"]({path.name})" in (EXAMPLES / "README.md").read_text()
