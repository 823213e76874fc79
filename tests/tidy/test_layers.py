"""The contracts in pyproject.toml, held against a small tree: in order, and with something planted."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

root = Path(__file__).parents[2]
WHOLE = {
    "model/ids.py": "",
    "ports/clock.py": "import tailrace.model.ids",
    "records/header.py": "import tailrace.ports.clock",
    "doors/kafka/fetch.py": "import tailrace.model.ids",
    "doors/http/fetch.py": "import tailrace.model.ids",
    "broker/node.py": "",
    "local/broker.py": "import tailrace.model.ids",
    "testing/broker.py": "import tailrace.local.broker",
    "cli/up.py": "import tailrace.local.broker",
    "cli/simulate.py": "import tailrace.testing.broker",
}


def lint(folder: Path, files: dict[str, str]) -> subprocess.CompletedProcess[str]:
    shutil.copy(root / "pyproject.toml", folder)
    for name, text in files.items():
        path = folder / "tailrace" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for package in [folder / "tailrace", *(folder / "tailrace").rglob("*/")]:
        if package.is_dir():
            (package / "__init__.py").touch()
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_a_tree_in_order_passes(tmp_path: Path) -> None:
    done = lint(tmp_path, WHOLE)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("planted", "broken"),
    [
        ({"model/ids.py": "import tailrace.ports.clock"}, "Nothing imports upwards BROKEN"),
        ({"rooms_nobody_listed/x.py": ""}, "Nothing imports upwards BROKEN"),
        ({"doors/http/fetch.py": "import tailrace.doors.kafka.fetch"}, "No door imports another BROKEN"),
        ({"local/broker.py": "import tailrace.doors.kafka.fetch"}, "Nothing imports upwards BROKEN"),
        ({"local/broker.py": "import tailrace.broker.node"}, "local does not import the broker BROKEN"),
        ({"cli/up.py": "import tailrace.testing.broker"}, "Only the simulate command imports testing BROKEN"),
    ],
)
def test_a_planted_import_is_seen(tmp_path: Path, planted: dict[str, str], broken: str) -> None:
    done = lint(tmp_path, WHOLE | planted)
    assert done.returncode == 1
    assert broken in done.stdout
