"""Brokers of 0.1.0, from this repository's history: the source of that commit, run by this environment's Python."""

import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Final

from tailrace.testing import Broker, Cluster

COMMIT_OF_0_1_0: Final = "fc2215b"
ROOT: Final = Path(__file__).parents[2]
OLD_PROGRAM: Final = str(Path(__file__).with_name("old_program.py"))
UNKNOWN_SETTINGS: Final = ("group_share_heartbeat_interval_ms",)  # those of `testing.Broker` that 0.1.0 does not have
SOURCE_VARIABLE: Final = "PYTHONPATH"  # comes before this checkout's own source


class NoHistory(Exception):
    """Why the source of 0.1.0 is not to be had here."""


def unpack_0_1_0(folder: Path) -> Path:
    """The folder that holds the package `tailrace` of 0.1.0."""
    try:
        archive = subprocess.run(
            ["git", "archive", "--format=tar", COMMIT_OF_0_1_0, "src/tailrace"],
            cwd=ROOT,
            capture_output=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError) as error:
        told = getattr(error, "stderr", b"").decode(errors="replace").strip() or str(error)
        raise NoHistory(
            f"brokers of 0.1.0 need commit {COMMIT_OF_0_1_0} of this repository, and git does not have it ({told}): "
            "run the tests in a full clone (`git fetch --unshallow`)"
        ) from error
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder / "src"


def run_old(source: Path, *words: str, given: str = "") -> str:
    """What a Python program prints that imports `tailrace` of 0.1.0."""
    ran = subprocess.run(
        [sys.executable, *words],
        input=given,
        env=os.environ | {SOURCE_VARIABLE: str(source)},
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout


def make_old(source: Path, *brokers: Broker) -> None:
    """Let these run 0.1.0 from their next start on."""
    for broker in brokers:
        broker.variables[SOURCE_VARIABLE] = str(source)
        for name in UNKNOWN_SETTINGS:
            broker._settings.pop(name, None)


def make_new(*brokers: Broker) -> None:
    """Let these run the tree at hand from their next start on."""
    for broker in brokers:
        broker.variables.pop(SOURCE_VARIABLE, None)


def old_cluster(source: Path, brokers: int = 3) -> Cluster:
    """A cluster whose brokers run 0.1.0, not started yet."""
    cluster = Cluster(brokers, proxied=False)
    make_old(source, *cluster.brokers)
    return cluster
