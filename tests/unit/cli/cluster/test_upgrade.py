"""`tailrace cluster upgrade`: a dry run without --yes, and that a raise cannot be undone is said before it is done."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tailrace.broker.starting import Startup
from tailrace.cluster.features import FEATURES_OF_0_1_0
from tailrace.doors.kafka import open_door
from tailrace.model.settings import Settings
from tailrace.ports import system_ports
from tailrace.testing import Broker
from tests.unit.cli.program import Program, run_tailrace

PAGE = Path(__file__).parents[4] / "docs" / "upgrading.md"
UNDONE = "A raise cannot be undone: brokers of earlier releases are refused from then on"


def found_as_0_1_0(folder: Path) -> None:
    """A data directory of a cluster at the level of 0.1.0."""

    async def life() -> None:
        settings = Settings(data_dir=str(folder), kafka_port=0)
        node = await Startup(system_ports(), settings, FEATURES_OF_0_1_0).run()
        door = await open_door(node)
        door.close()
        await node.stop()

    asyncio.run(life())


@pytest.fixture
def older(tmp_path: Path) -> Iterator[Broker]:
    """A broker of this release in a cluster that 0.1.0 has founded."""
    found_as_0_1_0(tmp_path / "data")
    with Broker(data_dir=tmp_path / "data") as broker:
        yield broker


def test_a_dry_run_says_what_would_be_raised_and_changes_nothing(older: Broker) -> None:
    for _ in range(2):
        ran = run_tailrace("cluster", "upgrade", bootstrap=older.bootstrap)
        assert (ran.code, ran.err) == (0, "")
        lines = ran.out.splitlines()
        assert lines[0] == "metadata.version is at level 1; the newest level that this broker supports is 4."
        assert lines[1] == "share.version is at level 0; the newest level that this broker supports is 1."
        assert lines[2] == "Every registered broker supports it."
        assert lines[3].startswith(UNDONE)
        assert lines[4:] == [
            "This was a dry run, nothing was changed. To raise it: tailrace cluster upgrade --yes",
        ]
        assert "".join(f"    {line}\n" for line in lines) in PAGE.read_text(), "the page shows what it prints"


def test_with_yes_the_level_is_raised_once_and_for_all(older: Broker) -> None:
    ran = run_tailrace("cluster", "upgrade", "--yes", bootstrap=older.bootstrap)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.index(UNDONE) < ran.out.index("metadata.version is at level 4 now, share.version is at level 1 now.")
    again = run_tailrace("cluster", "upgrade", "--yes", bootstrap=older.bootstrap)
    assert (again.code, again.err) == (0, "")
    assert again.out == ("Every feature is at the newest level that this broker supports. There is nothing to raise.\n")
    older.restart()
    assert "nothing to raise" in run_tailrace("cluster", "upgrade", bootstrap=older.bootstrap).out


def test_json_for_scripts(older: Broker) -> None:
    features = [
        {"feature": "metadata.version", "level": 1, "newest": 4},
        {"feature": "share.version", "level": 0, "newest": 1},
    ]
    dry = run_tailrace("cluster", "upgrade", "--json", bootstrap=older.bootstrap)
    assert json.loads(dry.out) == {"features": features, "refusal": None, "raised": False}
    done = run_tailrace("cluster", "upgrade", "--json", "--yes", bootstrap=older.bootstrap)
    assert json.loads(done.out) == {"features": features, "refusal": None, "raised": True}
    after = run_tailrace("cluster", "upgrade", "--json", bootstrap=older.bootstrap)
    assert json.loads(after.out) == {"features": [], "refusal": None, "raised": False}


def test_a_new_cluster_has_nothing_to_raise(tailrace: Program) -> None:
    ran = tailrace("cluster", "upgrade")
    assert (ran.code, "There is nothing to raise" in ran.out) == (0, True)


def test_nobody_there_is_said(tmp_path: Path) -> None:
    ran = run_tailrace("cluster", "upgrade")
    assert ran.code == 1
    assert "no broker at 127.0.0.1:1" in ran.err
