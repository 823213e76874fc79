"""The Python that is ready: whoever calls it must not notice that it is no fresh interpreter."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tailrace.pipeline.jvm import session as session_module
from tailrace.pipeline.jvm.python_forwarder import NUMBER
from tailrace.pipeline.jvm.ready_python import ReadyPython, ready_python
from tailrace.pipeline.jvm.session import worker_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TIMEOUT_S = 60.0
POLL_S = 0.02


@pytest.fixture(scope="module")
def ready() -> Iterator[ReadyPython]:
    own = ready_python.__wrapped__()
    yield own
    own.stop()


def call(ready: ReadyPython, code: str, **more: object) -> "subprocess.CompletedProcess[str]":
    command = [str(ready.program), "-c", code]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, **more)  # type: ignore[call-overload,no-any-return]


def wait_for_the_end_of(process: int) -> None:
    wait_until(lambda: not Path(f"/proc/{process}").exists())


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(POLL_S)


def test_it_has_done_its_imports(ready: ReadyPython) -> None:
    told = call(
        ready, "import sys; print({'pyspark.worker', 'pyarrow', 'tailrace.pipeline.source.batch'} <= {*sys.modules})"
    )
    assert told.stdout == "True\n", told.stderr


def test_it_is_the_callers(ready: ReadyPython, tmp_path: Path) -> None:
    """Its environment, its folder, its files, its end."""
    (tmp_path / "of_the_caller.py").write_text("said = 'found'")
    code = "import os, sys, of_the_caller; print(os.getcwd(), os.environ['COLOUR'], of_the_caller.said); sys.exit(7)"
    variables = {"PATH": os.environ["PATH"], "COLOUR": "blue", "PYTHONPATH": str(tmp_path)}
    told = call(ready, code, env=variables, cwd="/")
    assert (told.stdout, told.returncode) == ("/ blue found\n", 7), told.stderr
    assert call(ready, "print(input())", input="a line\n").stdout == "a line\n"
    assert call(ready, "import os; print('PYTHONPATH' in os.environ, 'COLOUR' in os.environ)").stdout.endswith(
        "False\n"
    )


def test_what_fails_says_so_to_the_caller(ready: ReadyPython) -> None:
    told = call(ready, "raise ValueError('of the caller')")
    assert told.returncode == 1
    assert "ValueError: of the caller" in told.stderr


def test_children_share_no_random_state(ready: ReadyPython) -> None:
    code = "import random, sys; print('numpy.random' in sys.modules, random.random())"
    first, second = (call(ready, code).stdout.split() for _ in range(2))
    assert (first[0], second[0]) == ("False", "False")
    assert first[1] != second[1]


def test_a_daemon_lives_until_its_input_ends(ready: ReadyPython) -> None:
    command = [str(ready.program), "-m", "pyspark.daemon", "pyspark.worker"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as daemon:
        assert daemon.stdin is not None
        assert daemon.stdout is not None
        (port,) = NUMBER.unpack(daemon.stdout.read(NUMBER.size))
        assert 0 < port < 2**16
        daemon.stdin.close()
        assert daemon.wait(TIMEOUT_S) == 1  # as Spark's daemons always end


def test_who_ends_the_program_ends_the_child(ready: ReadyPython) -> None:
    command = [str(ready.program), "-c", "import os, signal; print(os.getpid(), flush=True); signal.pause()"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        child = int(program.stdout.readline())
        program.send_signal(signal.SIGTERM)
        assert program.wait(TIMEOUT_S) == 1
    wait_for_the_end_of(child)


def test_a_program_that_is_ended_before_it_has_a_child_ends_the_child(ready: ReadyPython) -> None:
    os.kill(ready.process.pid, signal.SIGSTOP)
    try:
        command = [str(ready.program), "-c", "import signal; signal.pause()"]
        with subprocess.Popen(command) as program:
            wait_until(lambda: blocks_sigterm(program.pid))
            program.send_signal(signal.SIGTERM)
            os.kill(ready.process.pid, signal.SIGCONT)
            assert program.wait(TIMEOUT_S) == 1
    finally:
        os.kill(ready.process.pid, signal.SIGCONT)


def blocks_sigterm(process: int) -> bool:
    status = Path(f"/proc/{process}/status").read_text()
    mask = int(status.partition("SigBlk:")[2].split()[0], 16)
    return bool(mask >> (signal.SIGTERM - 1) & 1)


def test_what_is_printed_is_there_though_the_child_ends_at_once(ready: ReadyPython) -> None:
    """So Spark's workers end; what they print would be lost in a buffer."""
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    told = call(ready, "import os; print('there'); os._exit(0)", env=variables)
    assert told.stdout == "there\n"


def test_without_it_there_is_still_a_python() -> None:
    """Nor is a call lost that was on its way."""
    own = ready_python.__wrapped__()
    own.process.send_signal(signal.SIGSTOP)
    command = [str(own.program), "-c", "import sys; print(sys.executable, 'pyspark' in sys.modules)"]
    ordinary = f"{sys.executable} False\n"
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as on_its_way:
        own.process.kill()
        own.process.wait(TIMEOUT_S)
        assert on_its_way.communicate(timeout=TIMEOUT_S)[0] == ordinary
    assert subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=True).stdout == ordinary
    own.stop()


def test_a_folder_that_is_gone_is_the_callers(ready: ReadyPython, tmp_path: Path) -> None:
    command = f"cd {tmp_path}; rmdir {tmp_path}; {ready.program} -c 'print(1)'"
    variables = {"PATH": os.environ["PATH"]}
    done = subprocess.run(["sh", "-c", command], env=variables, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert done.stdout == "1\n", done.stderr


def test_where_there_can_be_none_the_ordinary_one_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that is too long for a socket's, for one."""
    far = tmp_path / ("x" * 100)
    far.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(far))
    monkeypatch.setattr(session_module, "ready_python", ready_python.__wrapped__)
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    assert worker_python({}, is_here=True) == sys.executable
    assert not list(far.iterdir())


def test_whoever_chose_a_python_gets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert worker_python({"spark.pyspark.python": "python3"}, is_here=True) == sys.executable
    monkeypatch.setenv("PYSPARK_PYTHON", "/usr/bin/python3")
    assert worker_python({}, is_here=True) == "/usr/bin/python3"


def test_it_ends_with_its_driver() -> None:
    code = """
from tailrace.pipeline.jvm.ready_python import ready_python
print(ready_python().process.pid, ready_python().program.parent, flush=True)
input()
"""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as driver:
        assert driver.stdout is not None
        process, folder = driver.stdout.readline().split()
        driver.kill()
    wait_for_the_end_of(int(process))
    assert not Path(folder).exists()


def test_a_fork_of_the_driver_leaves_it_alone() -> None:
    code = """
import os, sys
from tailrace.pipeline.jvm.ready_python import ready_python
ready = ready_python()
if os.fork() == 0:
    sys.exit(0)
os.wait()
print(ready.program.is_file(), ready.process.poll())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=TIMEOUT_S)
    assert done.stdout == "True None\n", done.stderr


@pytest.mark.spark
def test_workers_come_from_it(spark: "SparkSession") -> None:
    def ancestors(_: object) -> list[int]:
        daemon = os.getppid()
        return [int(Path(f"/proc/{daemon}/stat").read_text().rpartition(")")[2].split()[1])]

    assert spark.sparkContext.parallelize([0], 1).flatMap(ancestors).collect() == [ready_python().process.pid]
    assert os.environ["PYSPARK_PYTHON"] == sys.executable  # what others see stays when this process ends


@pytest.mark.spark
def test_machine_learning_finds_its_functions(spark: "SparkSession") -> None:
    """Spark adds them to every session at its start; ours adds them when the package is imported."""
    from pyspark.ml.functions import array_to_vector, vector_to_array
    from pyspark.sql import functions

    there_and_back = vector_to_array(array_to_vector(functions.array(functions.lit(1.5))))
    assert spark.range(1).select(there_and_back.alias("numbers")).first()["numbers"] == [1.5]
