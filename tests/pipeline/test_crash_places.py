"""`crash_places`: each is a function of the pipeline, and a process dies there only if it was told to."""

import os
import signal
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tailrace.pipeline.histories.committing import open_or_create
from tailrace.pipeline.upkeep import compact
from tests.pipeline.crash_places import PLACES, crash_variables, dying_at
from tests.pipeline.test_crashes import ARCHIVE_DRIVER, ARCHIVE_TASK, REPLAY_TASK, SOURCE_AND_SINK
from tests.pipeline.test_upkeep import COMPACTION

# A process that calls `_commit` of a compaction, which is the place "compact: committed", with nothing to commit.
PROGRAM = """
import sys
from pathlib import Path
from tailrace.pipeline.histories.committing import open_or_create
from tailrace.pipeline.upkeep.compact import _commit
open_or_create(Path(sys.argv[1]))
_commit(Path(sys.argv[1]), [])
print("lives")
"""


def run(folder: Path, crash_file: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", PROGRAM, str(folder)]
    environment = {**os.environ, **crash_variables(crash_file)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("place", PLACES)
def test_each_place_is_a_function_of_the_pipeline(place: str) -> None:
    owner = import_module(f"tailrace.pipeline.{PLACES[place].module}")
    for name in PLACES[place].function.split("."):
        owner = getattr(owner, name)
    assert callable(owner)


def test_processes_die_at_each_place_in_some_test() -> None:
    tried = [*SOURCE_AND_SINK, *ARCHIVE_TASK, *ARCHIVE_DRIVER, *REPLAY_TASK, *COMPACTION]
    assert sorted(tried) == sorted(PLACES)


def test_a_process_dies_where_the_file_says_once(tmp_path: Path) -> None:
    crash_file = tmp_path / "place"
    crash_file.write_text("compact: committed")
    assert run(tmp_path / "h", crash_file).returncode == -signal.SIGKILL
    assert not crash_file.exists()
    assert run(tmp_path / "h", crash_file).stdout == "lives\n"
    crash_file.write_text("compact: files merged")
    assert run(tmp_path / "h", crash_file).stdout == "lives\n"


def test_a_block_is_left_at_its_place(tmp_path: Path) -> None:
    open_or_create(tmp_path)
    done = []
    with dying_at("compact: committed"):
        done.append("before")
        compact._commit(tmp_path, [])
        done.append("after")
    assert done == ["before"]
    compact._commit(tmp_path, [])  # outside of the block it is as ever
    with pytest.raises(AssertionError, match="was not reached"), dying_at("compact: committed"):
        pass
