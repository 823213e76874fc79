"""The Python of the page about DMQP runs, and the links of its users' folder lead somewhere."""

import re
import subprocess
import sys
from pathlib import Path

from tests.interop.dmqp_server import COMPAT, partition

root = Path(__file__).parents[2]


def test_the_python_of_the_page_runs(tmp_path: Path) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", (root / "docs" / "dmqp.md").read_text(), re.DOTALL)
    with partition(tmp_path / "tailrace-data") as port:
        (tmp_path / "dmqp_client.py").write_text((COMPAT / "dmqp_client.py").read_text())  # copied, as its users do
        done = subprocess.run(
            [sys.executable, "-c", block.replace("8000", port)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert (done.stdout, done.stderr) == ("b'two coffees' b'two coffees' None\n", "")


def test_links_of_the_folder_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", (COMPAT / "README.md").read_text()):
        assert (COMPAT / target).exists(), target
