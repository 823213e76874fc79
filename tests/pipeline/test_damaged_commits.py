"""Commits that are not what was written: an audit names them, and nobody goes on as if they had said nothing."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tailrace.pipeline.failure import HistoryDamaged
from tailrace.pipeline.histories.committing import commit_batch, open_or_create
from tailrace.pipeline.histories.delta_log import commits, read_log
from tailrace.pipeline.histories.folder_check import check_folder
from tailrace.pipeline.histories.reading import snapshot_of
from tailrace.pipeline.kafka.cluster import Cluster
from tailrace.pipeline.upkeep.safety_check import checked_snapshot
from tests.pipeline.damage import empty_the_last_commit, truncate_a_commit
from tests.pipeline.test_histories import a_range
from tests.pipeline.test_upkeep import grown

Lines = list[dict[str, Any]]


def without_the_manifest(lines: Lines) -> Lines:
    lines[0]["commitInfo"].pop("tailrace")
    return lines


def without_a_key(lines: Lines) -> Lines:
    lines[0]["commitInfo"]["tailrace"]["ranges"][0].pop("gaps")
    return lines


def without_an_added_file(lines: Lines) -> Lines:
    return lines[:-1]


def without_commit_info(lines: Lines) -> Lines:
    return lines[1:]


@pytest.fixture
def folder(cluster: Cluster, topic: str, tmp_path: Path) -> Path:
    grown(cluster, topic, tmp_path / "h", 3)
    return tmp_path / "h"


def named(folder: Path) -> list[str]:
    return [one.file for one in check_folder(folder).findings if one.kind == "damaged commit"]


@pytest.mark.parametrize(
    "edit", [without_the_manifest, without_a_key, without_an_added_file, without_commit_info, lambda _: [5]]
)
def test_a_commit_that_lacks_something_is_named(folder: Path, edit: Callable[[Lines], Lines]) -> None:
    path = commits(folder)[2][1]
    lines = edit([json.loads(line) for line in path.read_text().splitlines()])
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert named(folder) == [path.name]


@pytest.mark.parametrize("number", range(4))
def test_whichever_was_emptied_is_named(folder: Path, number: int) -> None:
    path = commits(folder)[number][1]
    path.write_bytes(b"")
    found = check_folder(folder).findings
    assert [(one.kind, one.what) for one in found if one.file == path.name] == [("damaged commit", "it is empty")]
    assert all(one.what.endswith("keep it") for one in found if one.kind == "stray file")


@pytest.mark.parametrize("seed", range(10))
def test_wherever_it_was_cut(folder: Path, seed: int) -> None:
    assert named(folder) == []
    harm = truncate_a_commit(folder, random.Random(seed))
    assert named(folder) == [harm.file]


def test_nobody_goes_on_from_it(folder: Path) -> None:
    known = read_log(folder)
    known.version -= 1
    name = empty_the_last_commit(folder, random.Random(1)).file
    readers: list[Callable[[], object]] = [
        lambda: snapshot_of(folder),
        lambda: checked_snapshot(folder),
        lambda: open_or_create(folder),
        lambda: commit_batch(folder, [a_range(0, 5)]),
        lambda: commit_batch(folder, [a_range(0, 5)], known),
    ]
    for read in readers:
        with pytest.raises(HistoryDamaged, match=rf"{name} is damaged: it is empty\. Put it back from a copy"):
            read()


def test_a_commit_of_another_program_is_called_so(folder: Path) -> None:
    told = [{"commitInfo": {"engineInfo": "Apache-Spark/4.1.0 Delta-Lake/4.1.0"}}, {"add": {"path": "other.parquet"}}]
    (folder / "_delta_log" / f"{4:020d}.json").write_text("".join(json.dumps(one) + "\n" for one in told))
    assert [(one.kind, one.file) for one in check_folder(folder).findings] == [("foreign commit", "other.parquet")]
