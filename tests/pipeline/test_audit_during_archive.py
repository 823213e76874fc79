"""An archive that is at work is no reason for alarm: neither for an audit nor for compact and vacuum."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tailrace.pipeline.histories import folder_check
from tailrace.pipeline.histories.committing import commit_batch
from tailrace.pipeline.histories.delta_log import Snapshot, read_log
from tailrace.pipeline.histories.folder_check import check_folder
from tailrace.pipeline.histories.locking import LockName, exclusive_lock
from tailrace.pipeline.histories.manifest import ArchivedRange
from tailrace.pipeline.histories.writing import archive_range
from tailrace.pipeline.kafka.cluster import Cluster, TopicPartition
from tailrace.pipeline.kafka.fetching import OffsetRange
from tailrace.pipeline.upkeep import safety_check
from tests.pipeline.test_histories import two_days
from tests.pipeline.test_upkeep import grown
from tests.pipeline.topics import write

Archive = Callable[[], ArchivedRange]


@pytest.fixture
def folder(cluster: Cluster, topic: str, tmp_path: Path) -> Path:
    grown(cluster, topic, tmp_path / "h", 1)
    return tmp_path / "h"


@pytest.fixture
def archive(cluster: Cluster, topic: str, folder: Path) -> Archive:
    """Writes the files of a second batch, and commits nothing."""
    write(cluster, topic, two_days(10, 10))
    wanted = OffsetRange(partition=TopicPartition(topic, 0), start=10, end=20)
    return lambda: archive_range(cluster, wanted, folder)


def commit_after(files: Archive) -> Callable[[Path], Snapshot]:
    """Reads the log; and when that is done for the first time, an archive commits."""

    def read(folder: Path) -> Snapshot:
        snapshot = read_log(folder)
        if snapshot.version == 1:
            commit_batch(folder, [files()])
        return snapshot

    return read


def test_a_batch_that_is_committed_while_we_look(
    folder: Path, archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_check, "undamaged_snapshot_of", commit_after(archive))
    found = check_folder(folder)
    assert (found.findings, found.notes, found.snapshot.version) == ([], [], 1)


def test_an_archive_that_commits_and_ends_while_we_look(
    folder: Path, archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = archive()
    monkeypatch.setattr(folder_check, "undamaged_snapshot_of", commit_after(lambda: written))
    assert check_folder(folder).findings == []


@pytest.mark.parametrize("work", ["archive", "upkeep"])
def test_what_is_not_committed_yet(folder: Path, archive: Archive, work: LockName) -> None:
    files = archive().files
    with exclusive_lock(folder, work):
        found = check_folder(folder)
    assert found.findings == []
    assert [note.split(":")[0] for note in found.notes] == [f"2 files are in no commit yet, such as {files[0].path}"]
    alarmed = check_folder(folder)
    assert [(one.kind, one.file) for one in alarmed.findings] == [("stray file", file.path) for file in files]
    assert alarmed.notes == []


def test_upkeep_beside_an_archive(folder: Path, archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(safety_check, "snapshot_of", commit_after(archive))
    assert safety_check.checked_snapshot(folder).version == 1
