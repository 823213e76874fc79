"""The import-linter contracts in pyproject.toml, applied to a small tree with and without a violation."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

root = Path(__file__).parents[2]
ROOMS = (
    "services",
    "lifecycle",
    "transactions",
    "queues",
    "groups",
    "coordination",
    "control",
    "metadata",
    "machines",
    "replication",
    "partitions",
    "peers",
)
CLIENT_DOORS = "Client doors import nothing of the broker, and no door imports another"
VALID_TREE = {
    "model/ids.py": "",
    "ports/clock.py": "import tailrace.model.ids",
    "records/header.py": "import tailrace.ports.clock",
    "raft/replica.py": "",
    "log/log.py": "",
    **{f"broker/{room}/x.py": "" for room in ROOMS},
    "broker/node.py": "import tailrace.broker.services.x",
    "broker/starting.py": "import tailrace.broker.node",
    "broker/background.py": "",
    "broker/certificates.py": "",
    "broker/later_release.py": "",
    "broker/timers.py": "",
    "broker/services/x.py": "import tailrace.broker.partitions.x",
    "doors/kafka/fetch.py": "import tailrace.broker.services.x",
    "doors/http/fetch.py": "import tailrace.doors.upstream",
    "doors/grpc/fetch.py": "import tailrace.doors.upstream",
    "doors/upstream.py": "import tailrace.client.cluster",
    "client/cluster.py": "import tailrace.model.ids",
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


def test_a_valid_tree_passes(tmp_path: Path) -> None:
    done = lint(tmp_path, VALID_TREE)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("planted", "broken"),
    [
        ({"model/ids.py": "import tailrace.ports.clock"}, "Nothing imports upwards BROKEN"),
        ({"unlisted_room/x.py": ""}, "Nothing imports upwards BROKEN"),
        ({"broker/peers/x.py": "import tailrace.broker.partitions.x"}, "The broker's rooms import downwards BROKEN"),
        ({"broker/new_room/x.py": ""}, "The broker's rooms import downwards BROKEN"),
        ({"doors/kafka/fetch.py": "import tailrace.broker.partitions.x"}, "Doors use of the broker only its services"),
        ({"doors/kafka/fetch.py": "import tailrace.log.log"}, "Doors use of the broker only its services"),
        ({"doors/http/fetch.py": "import tailrace.doors.kafka.fetch"}, f"{CLIENT_DOORS} BROKEN"),
        ({"doors/http/fetch.py": "import tailrace.doors.grpc.fetch"}, f"{CLIENT_DOORS} BROKEN"),
        ({"doors/http/fetch.py": "import tailrace.broker.services.x"}, f"{CLIENT_DOORS} BROKEN"),
        ({"doors/upstream.py": "import tailrace.broker.services.x"}, f"{CLIENT_DOORS} BROKEN"),
        ({"local/broker.py": "import tailrace.doors.kafka.fetch"}, "Nothing imports upwards BROKEN"),
        ({"local/broker.py": "import tailrace.broker.node"}, "local does not import the broker BROKEN"),
        ({"cli/up.py": "import tailrace.testing.broker"}, "Only the simulate command imports testing BROKEN"),
    ],
)
def test_a_planted_import_is_found(tmp_path: Path, planted: dict[str, str], broken: str) -> None:
    done = lint(tmp_path, VALID_TREE | planted)
    assert done.returncode == 1
    assert " ".join(broken.split()) in " ".join(done.stdout.split())
