"""The commands and the Python of the page about the queue over HTTP run, in order, against one broker."""

import re
import subprocess
import sys
from pathlib import Path

from tailrace.testing import Broker

root = Path(__file__).parents[2]
COMPAT = root / "compat" / "http-queue"


def test_the_page_of_the_http_queue_runs(tmp_path: Path) -> None:
    page = (root / "docs" / "http.md").read_text()
    commands = re.findall(r"^    (curl .*)$", page, re.MULTILINE)
    (block,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    for name in ("producer_client.py", "consumer_client.py"):
        (tmp_path / name).write_text((COMPAT / name).read_text())  # copied, as its users do
    with Broker(fsync="never", http_port=0) as broker:
        address = broker.endpoints["http"]
        out = [run(["bash", "-c", line.replace("127.0.0.1:8001", address)], tmp_path) for line in commands]
        assert out[6] == '{"status":"success","message":"two coffees"}'
        assert out[9:11] == 2 * ['{"status":"success","message":"a tea"}']
        assert all('"status":"success"' in answer for answer in out)
        found = run([sys.executable, "-c", block.replace("127.0.0.1:8001", address)], tmp_path)
    assert found == "1 one green\nNo new message is published to teas.\n"


def run(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_links_of_the_folder_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", (COMPAT / "README.md").read_text()):
        assert (COMPAT / target).exists(), target
