"""`tailrace demo`: the first thing that people see."""

import re
import signal
from pathlib import Path

from confluent_kafka.admin import AdminClient

from tests.unit.cli.program import deadline_s, run_tailrace, start_tailrace


def test_it_shows_messages_and_how_to_connect() -> None:
    shown = run_tailrace("demo")
    assert shown.code == 0, shown.err
    assert "ann: 3 apples" in shown.out
    assert " topic list" in shown.out
    assert "kcat -b 127.0.0.1:" in shown.out
    assert "has stopped" in shown.out


def test_it_stays_until_ctrl_c_and_keeps_its_data(tmp_path: Path) -> None:
    for first_offset in (0, 5):
        process = start_tailrace("demo", "--stay", folder=tmp_path)
        assert process.stdout is not None
        shown = ""
        for line in process.stdout:
            shown += line
            if "until Ctrl-C" in line:
                break
        assert f"offset {first_offset}  ann: 3 apples" in shown
        bootstrap = re.search(r"up at (\S+),", shown)
        assert bootstrap is not None
        assert "demo" in AdminClient({"bootstrap.servers": bootstrap[1]}).list_topics(timeout=deadline_s).topics
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=deadline_s)
        assert (process.returncode, said) == (0, "")
    assert (tmp_path / "tailrace-data" / "meta.properties").is_file()
