"""`tailrace demo`: the first thing that people see."""

import re
import signal
import subprocess
import sys
from pathlib import Path

from confluent_kafka.admin import AdminClient

from tests.unit.cli.program import DEADLINE_S, run_tailrace, start_tailrace


def test_it_kills_a_leader_and_loses_nothing() -> None:
    shown = run_tailrace("demo", "--base-port", "0")
    assert shown.code == 0, shown.err
    killed = re.search(r"killed broker (\d)", shown.out)
    took_over = re.search(r"Broker (\d) took over; the producer waited \d+\.\d\d s", shown.out)
    assert killed is not None
    assert took_over is not None
    assert killed[1] != took_over[1]
    assert "all 2,000 confirmed messages are there, in order, none twice" in shown.out
    assert " cluster status" in shown.out
    assert re.search(r"^ *broker +Kafka", shown.out, re.MULTILINE)
    assert "kcat -b 127.0.0.1:" in shown.out
    assert "have stopped" in shown.out


def test_without_the_kafka_client_it_says_so_before_it_starts_brokers() -> None:
    hidden = "import sys; sys.modules['confluent_kafka'] = None"
    program = f"{hidden}; from tailrace.cli.main import main; sys.exit(main(['demo']))"
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=DEADLINE_S)
    assert shown.returncode == 1
    assert 'pip install "tailrace[client]"' in shown.stderr
    assert shown.stdout == ""


def test_it_stays_until_ctrl_c_and_keeps_its_data(tmp_path: Path) -> None:
    for _ in range(2):
        process = start_tailrace("demo", "--stay", "--base-port", "0", folder=tmp_path)
        assert process.stdout is not None
        shown = ""
        for line in process.stdout:
            shown += line
            if "until Ctrl-C" in line:
                break
        bootstrap = re.search(r"^  (127\S+)$", shown, re.MULTILINE)
        assert bootstrap is not None, shown
        known = AdminClient({"bootstrap.servers": bootstrap[1]}).list_topics(timeout=DEADLINE_S)
        assert sorted(known.brokers) == [1, 2, 3]
        assert "demo" in known.topics
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=DEADLINE_S)
        assert (process.returncode, said) == (0, "")
    assert (tmp_path / "tailrace-cluster" / "broker-3" / "meta.properties").is_file()
