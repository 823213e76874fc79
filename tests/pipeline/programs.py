"""Programs that tests start beside themselves, and the pages that say how."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tailrace.pipeline.jvm.java import find_java
from tailrace.pipeline.jvm.session import BRIEF_OPTIONS, QUICK_OPTIONS
from tailrace.pipeline.jvm.wheel import cache_folder

# What Spark's Python wants for Connect and for state; we do not, and shall notice if we do.
SPARK_EXTRAS = (
    "pandas>=2.2,<3",
    "grpcio>=1.76",
    "grpcio-status>=1.76",
    "googleapis-common-protos>=1.71",
    "zstandard>=0.25",
)
root = Path(__file__).parents[2]
START_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 30.0
POLL_S = 0.05


def environment(**more: str) -> dict[str, str]:
    """That of a person who has the virtual environment on the PATH, and a Java."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    fixed = {"PATH": path, "JAVA_HOME": str(find_java().home), "PYSPARK_PYTHON": sys.executable}
    brief = " ".join((*QUICK_OPTIONS, *BRIEF_OPTIONS))  # for JVMs that live for seconds
    return {**os.environ, **fixed, "SPARK_LOCAL_IP": "127.0.0.1", "JAVA_TOOL_OPTIONS": brief, **more}


def without_java(folder: Path) -> dict[str, str]:
    """That of a person who has no Java: none in JAVA_HOME, and on the PATH everything but that."""
    tools = _made(folder / "bin")
    for program in (path for place in os.get_exec_path() for path in Path(place).glob("*")):
        if program.name != "java" and not (tools / program.name).is_symlink():
            (tools / program.name).symlink_to(program)
    return {name: value for name, value in os.environ.items() if name != "JAVA_HOME"} | {"PATH": str(tools)}


@contextmanager
def started(command: Sequence[str], variables: Mapping[str, str], log: Path, says: str) -> Iterator[str]:
    """Start a program and wait until it says that it is up; what matched. It ends with the block."""
    with log.open("wb") as out:
        process = subprocess.Popen(command, env=variables, cwd=log.parent, stdout=out, stderr=out)
    try:
        yield _said(process, log, says)
    finally:
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()


def _said(process: "subprocess.Popen[bytes]", log: Path, says: str) -> str:
    deadline = time.monotonic() + START_TIMEOUT_S
    while not (found := re.search(says, log.read_text())):
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(POLL_S)
    return found[1]


def run(command: Sequence[str], variables: Mapping[str, str], folder: Path, timeout_s: float = 600.0) -> str:
    """Run a program to its end; what it printed."""
    process = subprocess.Popen(
        command, env=variables, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        printed, complained = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # what it has started would go on
        raise
    assert process.returncode == 0, f"{command}: {printed[-4000:]}\n{complained[-4000:]}"
    return printed


def fetched(*requirements: str) -> Path:
    """A folder with packages from PyPI that are not in this environment, fetched once."""
    folder = cache_folder() / "test-packages" / "-".join(re.sub(r"\W+", "_", one) for one in requirements)
    if not folder.is_dir():
        fresh = Path(tempfile.mkdtemp(prefix="fetching-", dir=_made(folder.parent)))
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(fresh), *requirements]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            shutil.rmtree(fresh)
            pytest.skip(f"pip cannot get {', '.join(requirements)}: {done.stderr.strip()[-200:]}")
        fresh.rename(folder)
    return folder


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def python_of(page: str, topic: str) -> str:
    """The Python of a page in `docs/pipeline/`, with other topics: `topic` for orders, `topic-copies` for copies."""
    blocks = re.findall(r"```python\n(.*?)```", (root / "docs" / "pipeline" / page).read_text(), re.DOTALL)
    assert blocks, f"{page} has no Python"
    return "\n".join(blocks).replace('"orders"', f'"{topic}"').replace('"copies"', f'"{topic}-copies"')
