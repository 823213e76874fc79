"""Compact and vacuum: fewer files, the same records, and nothing removed that anybody needs."""

import os
import random
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tailrace.cli.main import main
from tailrace.pipeline import archive, audit, compact, history, replay, vacuum
from tailrace.pipeline.failure import NotOurHistory, PipelineFailed
from tailrace.pipeline.histories.committing import commit_batch, open_or_create, saved_last_commit
from tailrace.pipeline.histories.delta_log import Snapshot, commits, read_log
from tailrace.pipeline.histories.file_checks import rises, wrong_with
from tailrace.pipeline.histories.locking import exclusive_lock
from tailrace.pipeline.histories.manifest import ArchivedRange
from tailrace.pipeline.histories.writing import DayFile, archive_range
from tailrace.pipeline.kafka.cluster import Cluster, TopicPartition
from tailrace.pipeline.kafka.fetching import OffsetRange
from tailrace.pipeline.upkeep import compact as compacting
from tailrace.pipeline.upkeep.merging import merged
from tailrace.pipeline.upkeep.planning import groups
from tailrace.testing import Broker
from tests.pipeline.crash_places import dying_at
from tests.pipeline.damage import (
    change_value,
    delete,
    flip_bit,
    lose_a_commit,
    swap_order,
    swap_order_and_cover_up,
    truncate,
)
from tests.pipeline.test_histories import a_range, two_days
from tests.pipeline.test_sink import values_in_topic
from tests.pipeline.topics import make_topic, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAY_MS = 24 * 60 * 60 * 1000
COMPACTION = ["compact: files merged", "compact: committed"]  # places where it may die


def grown(cluster: Cluster, topic: str, folder: Path, batches: int = 4) -> list[ArchivedRange]:
    """A history of ten records a batch and two days, without Spark; the ranges in it."""
    make_topic(cluster, topic)
    open_or_create(folder)
    for batch in range(batches):
        write(cluster, topic, two_days(10, 10 * batch))
        wanted = OffsetRange(partition=TopicPartition(topic, 0), start=10 * batch, end=10 * batch + 10)
        commit_batch(folder, [archive_range(cluster, wanted, folder)])
    return read_log(folder).ranges


@pytest.mark.spark
def test_fewer_files_and_the_same_records(
    spark: "SparkSession", broker: Broker, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    grown(cluster, topic, tmp_path / "h")
    before = history(spark, tmp_path / "h").orderBy("offset").collect()
    assert main(["pipeline", "compact", str(tmp_path / "h")]) == 0
    assert len(read_log(tmp_path / "h").live) == 2  # two days
    assert history(spark, tmp_path / "h").orderBy("offset").collect() == before
    found = audit(spark, tmp_path / "h", bootstrap=broker.bootstrap)
    assert (found.findings, found.notes, found.records, found.compared) == ((), (), 40, 1)
    write(cluster, topic, two_days(10, 40))
    assert archive(spark, broker.bootstrap, tmp_path / "h", topics=[topic], available_now=True).records == 10
    assert main(["pipeline", "vacuum", str(tmp_path / "h"), "--older-than", "0s"]) == 0
    assert audit(spark, tmp_path / "h", bootstrap=broker.bootstrap).is_complete
    make_topic(cluster, f"{topic}-again")
    assert replay(spark, tmp_path / "h", broker.bootstrap, topic=topic, into=f"{topic}-again") == 50
    assert values_in_topic(cluster, f"{topic}-again") == sorted(one.value or b"" for one in two_days(50))


def test_which_ranges_are_merged(cluster: Cluster, topic: str, tmp_path: Path) -> None:
    ranges = grown(cluster, topic, tmp_path / "h")
    one = sum(file.size for file in ranges[0].files)
    assert [len(group) for group in groups(ranges, 100 * one)] == [4]
    assert [len(group) for group in groups(ranges, 3 * one)] in ([2, 2], [3])
    assert groups(ranges, one // 2) == []  # large enough as they are
    assert groups([ranges[0], ranges[2]], 100 * one) == []  # no neighbours
    assert groups([a_range(0, 5), a_range(5, 9)], 100) == []  # no files


@pytest.mark.parametrize("harm", [change_value, flip_bit, swap_order, truncate])
def test_what_is_damaged_is_not_merged(cluster: Cluster, topic: str, tmp_path: Path, harm: object) -> None:
    ranges = grown(cluster, topic, tmp_path / "h")
    assert callable(harm)
    named = harm(tmp_path / "h", random.Random(7))
    before = sorted((tmp_path / "h").rglob("*"))
    with pytest.raises(PipelineFailed, match=Path(named.file).name):
        merged(ranges, tmp_path / "h")
    assert sorted((tmp_path / "h").rglob("*")) == before


def test_order_is_looked_at_by_itself(cluster: Cluster, topic: str, tmp_path: Path) -> None:
    grown(cluster, topic, tmp_path / "h")
    harm = swap_order_and_cover_up(tmp_path / "h", random.Random(7))
    live = read_log(tmp_path / "h").live
    wrong = {path: wrong_with(tmp_path / "h", file) for path, file in live.items()}
    said = "its records are not in the order of their offsets"
    assert {path: what for path, what in wrong.items() if what} == {harm.file: said}
    with pytest.raises(PipelineFailed, match=said):
        merged(read_log(tmp_path / "h").ranges, tmp_path / "h")
    assert not rises(np.array([5, 6]), 5)
    assert rises(np.array([5, 7]), 4)


@pytest.mark.spark
def test_one_damaged_file_and_nothing_is_changed(
    spark: "SparkSession", cluster: Cluster, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grown(cluster, topic, tmp_path / "h")
    flip_bit(tmp_path / "h", random.Random(3))
    before = sorted((tmp_path / "h").rglob("*.parquet"))
    size = max(file.size for file in read_log(tmp_path / "h").live.values())
    with pytest.raises(PipelineFailed, match=r"these files were not compacted, .*: topic=.*is not as it was written"):
        compact(spark, tmp_path / "h", target_bytes=5 * size)  # two groups, of which one is sound
    assert sorted((tmp_path / "h").rglob("*.parquet")) == before
    assert read_log(tmp_path / "h").version == 4


@pytest.mark.parametrize("harm", [delete, lose_a_commit])
def test_a_history_that_is_not_sound_is_left_alone(cluster: Cluster, topic: str, tmp_path: Path, harm: object) -> None:
    grown(cluster, topic, tmp_path / "h")
    assert callable(harm)
    harm(tmp_path / "h", random.Random(1))
    before = sorted((tmp_path / "h").rglob("*.parquet"))
    with pytest.raises(PipelineFailed, match="nothing was changed"):
        vacuum(tmp_path / "h", older_than_ms=0)
    assert sorted((tmp_path / "h").rglob("*.parquet")) == before


def test_folders_that_are_not_ours(tmp_path: Path) -> None:
    (tmp_path / "topic=a" / "date=2026-11-16").mkdir(parents=True)
    stranger = tmp_path / "topic=a" / "date=2026-11-16" / f"00000-{0:020d}-{9:020d}.parquet"
    stranger.write_text("somebody's")
    with pytest.raises(NotOurHistory, match="there is no history in"):
        vacuum(tmp_path, older_than_ms=0)
    assert stranger.exists()


def test_an_archive_that_commits_at_the_same_time(cluster: Cluster, topic: str, tmp_path: Path) -> None:
    """Whoever comes second takes the next number: what either has done is there."""
    ranges = grown(cluster, topic, tmp_path / "h")
    one = merged(ranges[:3], tmp_path / "h")
    write(cluster, topic, two_days(10, 40))
    fresh = archive_range(cluster, OffsetRange(partition=ranges[0].of, start=40, end=50), tmp_path / "h")
    commit_batch(tmp_path / "h", [fresh])  # after the compaction was planned, before its commit
    compacting._commit(tmp_path / "h", [(ranges[:3], one)])
    after = read_log(tmp_path / "h")
    assert [(one.start, one.end) for one in sorted(after.ranges, key=lambda one: one.start)] == [
        (0, 30), (30, 40), (40, 50),
    ]  # fmt: skip
    with pytest.raises(PipelineFailed, match="would not have the same records"):
        compacting._commit(tmp_path / "h", [(ranges[:3], one)])  # the same once more: it has changed since


def test_a_number_that_a_compaction_took(
    cluster: Cluster, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The archive has read the log, and before it commits, a compaction does."""
    from tailrace.pipeline.histories import committing

    ranges = grown(cluster, topic, tmp_path / "h")
    one = merged(ranges, tmp_path / "h")
    write(cluster, topic, two_days(10, 40))
    fresh = archive_range(cluster, OffsetRange(partition=ranges[0].of, start=40, end=50), tmp_path / "h")
    beside = [one]

    def meanwhile(folder: Path, known: Snapshot | None) -> Snapshot:
        snapshot = read_log(folder, known)
        if beside:
            compacting._commit(folder, [(ranges, beside.pop())])
        return snapshot

    monkeypatch.setattr(committing, "read_log", meanwhile)
    commit_batch(tmp_path / "h", [fresh])
    assert [version for version, _ in commits(tmp_path / "h")] == [0, 1, 2, 3, 4, 5, 6]
    assert [(one.start, one.end) for one in read_log(tmp_path / "h").ranges] == [(0, 40), (40, 50)]


def test_an_archive_and_compactions_race(cluster: Cluster, topic: str, tmp_path: Path) -> None:
    """Twenty batches are archived while files are merged as fast as it goes, all in one process."""
    folder = tmp_path / "h"
    grown(cluster, topic, folder, 1)
    write(cluster, topic, two_days(200, 10))
    of = TopicPartition(topic, 0)
    ranges = [OffsetRange(partition=of, start=start, end=start + 10) for start in range(10, 210, 10)]
    written = [archive_range(cluster, one, folder) for one in ranges]

    def archiving() -> None:
        known = Snapshot()
        for one in written:
            commit_batch(folder, [one], known)

    with ThreadPoolExecutor(1) as beside:
        archived = beside.submit(archiving)
        merges = 0
        while not archived.done() or len(read_log(folder).ranges) > 1:
            some = sorted(read_log(folder).ranges, key=lambda one: one.start)[:3]
            if len(some) > 1:
                compacting._commit(folder, [(some, merged(some, folder))])
                merges += 1
        archived.result()
    after = read_log(folder)
    assert [(one.start, one.end, one.count) for one in after.ranges] == [(0, 210, 210)]
    assert (after.version, saved_last_commit(folder), after.missing_commits) == (1 + 20 + merges, 1 + 20 + merges, [])
    assert all(not wrong_with(folder, file) for file in after.live.values())


def leave_behind(folder: Path, name: str, days: int) -> Path:
    """A file that is so many days old."""
    path = next(folder.rglob("*.parquet")).with_name(name)
    path.write_bytes(b"left behind")
    then = time.time() - days * DAY_MS / 1000
    os.utime(path, (then, then))
    return path


def test_what_is_removed_and_what_is_left(cluster: Cluster, topic: str, tmp_path: Path) -> None:
    folder = tmp_path / "h"
    ranges = grown(cluster, topic, folder)
    compacting._commit(folder, [(ranges, merged(ranges, folder))])
    orphan = leave_behind(folder, f"00000-{70:020d}-{80:020d}.parquet", 8)
    young = leave_behind(folder, f"00000-{80:020d}-{90:020d}.parquet", 6)
    unfinished = leave_behind(folder, f".00000-{70:020d}-{80:020d}.parquet.123", 8)
    strange = leave_behind(folder, "notes.parquet", 8)
    died = DayFile(folder, ranges[0].files[0].path, ranges[0].files[0].date)  # it was never finished
    tried = vacuum(folder, dry_run=True)
    assert {one.kind for one in tried.gone} == {"orphan", "unfinished"}
    assert orphan.exists()
    with exclusive_lock(folder, "archive"):
        assert vacuum(folder).gone == ()
    assert vacuum(folder).gone == tried.gone
    assert [path.exists() for path in (orphan, young, unfinished, strange)] == [False, True, False, True]
    done = vacuum(folder, older_than_ms=0)
    assert sorted(one.kind for one in done.gone) == ["orphan", *["replaced"] * 8, "unfinished"]
    died.discard()
    assert sorted(str(path.relative_to(folder)) for path in folder.rglob("*.parquet")) == sorted(
        [*read_log(folder).live, str(strange.relative_to(folder))]
    )


def test_two_at_once(cluster: Cluster, topic: str, tmp_path: Path) -> None:
    grown(cluster, topic, tmp_path / "h", 1)
    with exclusive_lock(tmp_path / "h", "upkeep"), pytest.raises(PipelineFailed, match="another compaction or vacuum"):
        vacuum(tmp_path / "h")
    shutil.rmtree(tmp_path / "h")


@pytest.mark.spark
@pytest.mark.parametrize("place", COMPACTION)
def test_a_compaction_that_died_is_done_again(
    spark: "SparkSession", cluster: Cluster, topic: str, tmp_path: Path, place: str
) -> None:
    grown(cluster, topic, tmp_path / "h")
    with dying_at(place):
        compact(spark, tmp_path / "h")
    compact(spark, tmp_path / "h")
    assert len(read_log(tmp_path / "h").live) == 2
    assert audit(spark, tmp_path / "h").findings == ()
