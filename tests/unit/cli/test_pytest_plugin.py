"""The fixture that users get by installing tailrace."""

import subprocess
import sys
from pathlib import Path

from tests.unit.cli.program import deadline_s, environment

users_test = """
from confluent_kafka.admin import AdminClient

def test_it(tailrace_broker):
    assert AdminClient({"bootstrap.servers": tailrace_broker.bootstrap}).list_topics(timeout=20).brokers

def test_it_is_the_same_one(tailrace_broker, request):
    assert tailrace_broker.pid > 0
"""


def test_a_users_test_finds_its_broker(tmp_path: Path) -> None:
    (tmp_path / "test_users.py").write_text(users_test)
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=environment(),
        timeout=deadline_s,
    )
    assert "2 passed" in ran.stdout, ran.stdout + ran.stderr
