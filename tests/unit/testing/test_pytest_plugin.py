"""The fixture that users get by installing tailrace."""

import subprocess
import sys
from pathlib import Path

from tests.unit.cli.program import DEADLINE_S, environment

USERS_TEST = """
from confluent_kafka.admin import AdminClient

def test_it(tailrace_broker):
    assert AdminClient({"bootstrap.servers": tailrace_broker.bootstrap}).list_topics(timeout=20).brokers

def test_it_is_the_same_one(tailrace_broker, request):
    assert tailrace_broker.pid > 0
"""

USERS_TEST_OF_A_CLUSTER = """
def test_it(tailrace_cluster):
    tailrace_cluster.kill(2)
    assert tailrace_cluster.ids == [1, 2, 3, 4]
"""


def test_a_users_test_finds_its_broker(tmp_path: Path) -> None:
    out = run_pytest(tmp_path, USERS_TEST)
    assert "2 passed" in out, out


def test_a_users_test_finds_its_cluster_and_a_failure_its_logs(tmp_path: Path) -> None:
    out = run_pytest(tmp_path, USERS_TEST_OF_A_CLUSTER)
    assert "assert [1, 2, 3] == [1, 2, 3, 4]" in out, out
    logs = out.partition("tailrace brokers' logs")[2]
    for one in (1, 2, 3):
        assert f"broker {one}:\nIts log ends:\n" in logs


def run_pytest(folder: Path, test: str) -> str:
    (folder / "test_users.py").write_text(test)
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)],
        cwd=folder,
        capture_output=True,
        text=True,
        env=environment(),
        timeout=DEADLINE_S,
    )
    return ran.stdout + ran.stderr
