"""What the pages say is what happens: the README and the page of queues run, and links lead somewhere."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tailrace.cli.settings import markdown
from tailrace.testing import Broker

root = Path(__file__).parents[2]
readme = (root / "README.md").read_text()
pages = sorted(
    [*root.glob("*.md"), *root.glob("docs/**/*.md"), *root.glob("benchmarks/*.md"), *root.glob("examples/*.md")]
)


def shell(command: str, broker: Broker, folder: Path) -> str:
    """Run one line as a person would, in an empty folder, against this broker."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "TAILRACE_BOOTSTRAP": broker.bootstrap, "PATH": path}
    done = subprocess.run(
        command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout


def command_block() -> list[str]:
    """The lines under "Command line", but for `serve`, which stays, and `bench`, which takes its time."""
    section = readme.split("## Command line\n")[1].split("\n\n")[0]
    lines = [line.strip() for line in section.splitlines()]
    assert all("tailrace" in line for line in lines)
    return [line for line in lines if not line.startswith(("tailrace serve", "tailrace bench"))]


def test_the_python_of_the_readme_runs(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    assert len(blocks) >= 2
    with Broker(fsync="never") as broker:
        for block in blocks:
            exec(block.replace("127.0.0.1:9092", broker.bootstrap), {})
        assert "two coffees" in shell("tailrace consume orders --from-beginning --max 1", broker, tmp_path)


def test_the_commands_of_the_readme_run(tmp_path: Path) -> None:
    with Broker(fsync="never", data_dir=tmp_path / "data") as broker:
        commands = command_block()
        assert len(commands) >= 4
        shell("echo first | tailrace produce orders", broker, tmp_path)  # as the snippet at the top does
        out = [shell(line, broker, tmp_path) for line in commands]
    assert any('"two coffees"' in text for text in out)


def test_the_page_of_queues_runs(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    page = (root / "docs" / "queues.md").read_text()
    commands = re.findall(r"^    (tailrace queue .*)$", page, re.MULTILINE)
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert (len(commands), len(blocks)) == (6, 2)
    with Broker(fsync="never") as broker:
        for line in commands[:-1]:
            shell(line, broker, tmp_path)
        for block in blocks:
            exec(block.replace("127.0.0.1:9092", broker.bootstrap), {})
        assert capfd.readouterr().out == "sending Dear Ann, ...\nsending Dear Bob, ...\n"
        assert "redrive" in commands[-1]
        assert "redrove 1 message of mails" in shell(f"{commands[-1]} 2>&1", broker, tmp_path)


def test_the_page_of_compaction_runs(tmp_path: Path) -> None:
    page = (root / "docs" / "compaction.md").read_text()
    commands = re.findall(r"^    ((?:echo .* )?tailrace .*)$", page, re.MULTILINE)
    assert len(commands) == 3
    with Broker(fsync="never") as broker:
        out = [shell(line, broker, tmp_path) for line in commands]
    assert out[-1] == "tea=3 euro\n"


def test_the_page_of_settings_is_what_the_broker_reads() -> None:
    page = root / "docs" / "settings.md"
    assert page.read_text() == markdown(), "make it anew: tailrace settings --markdown > docs/settings.md"


@pytest.mark.parametrize("page", pages, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
