"""The Python that is ready: whoever calls it must not notice that it is no fresh interpreter."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tailrace.pipeline.jvm.hand_over import number
from tailrace.pipeline.jvm.ready_python import ReadyPython, ready_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

timeout_s = 60.0
poll_s = 0.02


@pytest.fixture(scope="module")
def ready() -> Iterator[ReadyPython]:
    own = ready_python.__wrapped__()
    yield own
    own.stop()


def call(ready: ReadyPython, code: str, **more: object) -> "subprocess.CompletedProcess[str]":
    command = [str(ready.program), "-c", code]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, **more)  # type: ignore[call-overload,no-any-return]


def wait_for_the_end_of(process: int) -> None:
    deadline = time.monotonic() + timeout_s
    while Path(f"/proc/{process}").exists():
        assert time.monotonic() < deadline, f"process {process} goes on"
        time.sleep(poll_s)


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
        (port,) = number.unpack(daemon.stdout.read(number.size))
        assert 0 < port < 2**16
        daemon.stdin.close()
        assert daemon.wait(timeout_s) == 1  # as Spark's daemons always end


def test_who_ends_the_program_ends_the_child(ready: ReadyPython) -> None:
    command = [str(ready.program), "-c", "import os, signal; print(os.getpid(), flush=True); signal.pause()"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        child = int(program.stdout.readline())
        program.send_signal(signal.SIGTERM)
        assert program.wait(timeout_s) == 1
    wait_for_the_end_of(child)


def test_without_it_there_is_still_a_python() -> None:
    own = ready_python.__wrapped__()
    own.process.kill()
    own.process.wait(timeout_s)
    told = call(own, "import sys; print(sys.executable, 'pyspark' in sys.modules)")
    assert told.stdout == f"{sys.executable} False\n", told.stderr
    own.stop()


def test_it_ends_with_its_driver() -> None:
    code = """
from tailrace.pipeline.jvm.ready_python import ready_python
print(ready_python().process.pid, flush=True)
input()
"""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as driver:
        assert driver.stdout is not None
        process = int(driver.stdout.readline())
        driver.kill()
    wait_for_the_end_of(process)


@pytest.mark.spark
def test_workers_come_from_it(spark: "SparkSession") -> None:
    def ancestors(_: object) -> list[int]:
        daemon = os.getppid()
        return [int(Path(f"/proc/{daemon}/stat").read_text().rpartition(")")[2].split()[1])]

    assert spark.sparkContext.parallelize([0], 1).flatMap(ancestors).collect() == [ready_python().process.pid]


@pytest.mark.spark
def test_machine_learning_finds_its_functions(spark: "SparkSession") -> None:
    """Spark adds them to every session at its start; ours adds them when the package is imported."""
    from pyspark.ml.functions import array_to_vector, vector_to_array
    from pyspark.sql import functions

    there_and_back = vector_to_array(array_to_vector(functions.array(functions.lit(1.5))))
    assert spark.range(1).select(there_and_back.alias("numbers")).first()["numbers"] == [1.5]
