"""What users of the gRPC queue type, in a copy of its folder below `compat/`."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from checks.compile_protos import PROTOS

FOLDER = Path(__file__).parents[2] / "compat" / "grpc-queue"
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
pytestmark = pytest.mark.foreign


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("compat") / "grpc-queue"
    shutil.copytree(FOLDER, made, ignore=shutil.ignore_patterns("build", "brokers-data"))
    return made


def typed(folder: Path, command: str) -> str:
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": PATH},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def addresses(folder: Path) -> Iterator[list[str]]:
    """Those of the gRPC doors of ./run.sh."""
    command = ["./run.sh", "--grpc-port", "0", "--base-port", "0"]
    running = subprocess.Popen(command, cwd=folder, env={**os.environ, "PATH": PATH}, stdout=subprocess.PIPE, text=True)
    try:
        assert running.stdout is not None
        found = re.search(r"\bgrpc=(\S+)", running.stdout.readline())
        assert found is not None
        yield found[1].split(",")
    finally:
        running.send_signal(signal.SIGINT)
        running.wait(60)


def test_the_service_is_that_of_the_door() -> None:
    assert (FOLDER / "message_queue.proto").read_text() == (PROTOS / "message_queue.proto").read_text()


def test_what_is_built_are_stubs(folder: Path) -> None:
    typed(folder, "./gradlew build")
    assert (folder / "build" / "stubs" / "message_queue_pb2_grpc.py").exists()
    typed(folder, "./gradlew clean")
    assert not (folder / "build" / "stubs").exists()


@pytest.mark.skipif(shutil.which("cmake") is None, reason="cmake is not installed")
def test_cmake_builds_the_same(folder: Path) -> None:
    typed(folder, "cmake -S . -B build && cmake --build build")
    assert (folder / "build" / "stubs" / "message_queue_pb2_grpc.py").exists()


def test_the_brokers_serve_the_example(folder: Path, addresses: list[str]) -> None:
    assert len(addresses) == 3
    typed(folder, "./gradlew build")
    out = typed(folder, f"./zkServer.sh start && python3 example.py {addresses[1]}")
    assert sorted(re.findall(r"message \d", out)) == [f"message {number}" for number in range(10)]


def test_wrong_words_are_told(folder: Path) -> None:
    for command in ("./gradlew run", "./zkServer.sh", "./zkServer.sh restart"):
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=folder,
            env={**os.environ, "PATH": PATH},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("usage: ./")
