"""`compact`: merge many small files of a history into few large ones, with the same records as before.

Spark's tasks merge the files; the driver commits. Before writing a commit, the driver applies it to the log in memory:
the result must have the same offsets, the same number of records and the same gaps. An archive may run meanwhile: it
only adds ranges at the end, so the writer that loses the race for a commit number takes the next number.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tailrace.model.limits import MiB
from tailrace.pipeline.failure import PipelineFailed
from tailrace.pipeline.histories.commit_file import ENGINE, Action
from tailrace.pipeline.histories.committing import save_last_commit
from tailrace.pipeline.histories.coverage import range_findings
from tailrace.pipeline.histories.delta_log import (
    CommitTaken,
    Snapshot,
    add_action,
    apply,
    commit,
    read_log,
    remove_action,
    sync_folder,
)
from tailrace.pipeline.histories.locking import exclusive_lock
from tailrace.pipeline.histories.manifest import ArchivedRange, archived_range_from
from tailrace.pipeline.tasks import run_tasks
from tailrace.pipeline.upkeep.planning import groups
from tailrace.pipeline.upkeep.safety_check import checked_snapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TARGET_BYTES: Final = 128 * MiB
GROUPS_AT_ONCE: Final = 16  # groups per commit, which is the most work a crash can lose
TRIES_MAX: Final = 20  # attempts to get a commit number while an archive runs

Replaced = tuple[Sequence[ArchivedRange], ArchivedRange]  # the old ranges, and the range that replaces them


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """The result of one compaction run."""

    files_before: int  # only files that were merged
    files_after: int
    records: int
    bytes: int
    commits: int


def compact(
    spark: "SparkSession",
    path: str | Path,
    *,
    target_bytes: int = TARGET_BYTES,
    on_plan: Callable[[int], None] = lambda _: None,
    on_merged: Callable[[int], None] = lambda _: None,
) -> Compacted:
    """Merge files into files of about `target_bytes` at most. `PipelineFailed`, and no commit, if a file is damaged."""
    folder = Path(path).absolute()
    checked_snapshot(folder)
    with exclusive_lock(folder, "upkeep"):
        planned = groups(checked_snapshot(folder).ranges, target_bytes)
        on_plan(len(planned))
        done: list[Replaced] = []
        for first in range(0, len(planned), GROUPS_AT_ONCE):
            some = planned[first : first + GROUPS_AT_ONCE]
            merged = _merge(spark, folder, some)
            replaced = list(zip(some, merged, strict=True))
            _commit(folder, replaced)
            done += replaced
            on_merged(len(some))
    return _summary(done, commits=-(-len(planned) // GROUPS_AT_ONCE))


def _merge(spark: "SparkSession", folder: Path, some: Sequence[Sequence[ArchivedRange]]) -> list[ArchivedRange]:
    inputs = [[one.to_dict() for one in group] for group in some]
    answers = run_tasks(spark, "tailrace.pipeline.upkeep.merging:merge_ranges", inputs, str(folder))
    found = [archived_range_from(told) for told, wrong in answers if not wrong]
    wrongs = [wrong for _, wrong in answers if wrong]
    if wrongs:
        for file in (file for one in found for file in one.files):
            (folder / file.path).unlink()
        raise PipelineFailed(f"these files were not compacted, nor those beside them: {'; '.join(wrongs)}")
    by_start = {(one.of, one.start): one for one in found}
    return [by_start[group[0].of, group[0].start] for group in some]


def _commit(folder: Path, replaced: Sequence[Replaced]) -> None:
    for parent in dict.fromkeys((folder / file.path).parent for _, one in replaced for file in one.files):
        sync_folder(parent)
    for _ in range(TRIES_MAX):
        snapshot = read_log(folder)
        version = snapshot.version + 1
        actions = _actions(replaced, int(time.time() * 1000))
        _demand_the_same(snapshot, replaced, actions)
        try:
            commit(folder, version, actions)
        except CommitTaken:
            continue
        save_last_commit(folder, version)
        return
    raise PipelineFailed(f"an archive was faster in {TRIES_MAX} attempts; compact {folder} when less is written to it")


def _actions(replaced: Sequence[Replaced], now_ms: int) -> list[Action]:
    told: dict[str, Any] = {"merged": [one.to_dict() for _, one in replaced]}
    olds = [(one, file) for group, _ in replaced for one in group for file in one.files]
    news = [(one, file) for _, one in replaced for file in one.files]
    return [
        {"commitInfo": {"timestamp": now_ms, "operation": "OPTIMIZE", "engineInfo": ENGINE, "tailrace": told}},
        *(remove_action(one, file, now_ms) for one, file in olds),
        *(add_action(one, file, now_ms, is_new=False) for one, file in news),
    ]


def _demand_the_same(snapshot: Snapshot, replaced: Sequence[Replaced], actions: Sequence[Action]) -> None:
    """Check that the history has the same records and gaps with this commit as without it."""
    before = _account(snapshot)
    gone = [one for group, _ in replaced for one in group if one not in snapshot.ranges]
    for action in actions:
        apply(snapshot, action)
    is_same = not gone and _account(snapshot) == before and not range_findings(snapshot.ranges)
    if not is_same:
        raise PipelineFailed(
            "the compacted history would not have the same records, so nothing was compacted. Did it change meanwhile?"
        )


def _account(snapshot: Snapshot) -> dict[object, tuple[int, int]]:
    """Record counts by partition and day; counts and last offsets of gaps by reason, partition and first offset."""
    account: dict[object, tuple[int, int]] = {}
    for one in snapshot.ranges:
        for key, count, last in [
            *((("records", one.of, file.date), file.count, 0) for file in one.files),
            *(((gap.reason, one.of, gap.first), gap.count, gap.last) for gap in one.gaps),
        ]:
            held = account.get(key, (0, 0))
            account[key] = (held[0] + count, held[1] + last)
    return account


def _summary(done: Sequence[Replaced], *, commits: int) -> Compacted:
    return Compacted(
        files_before=sum(len(one.files) for group, _ in done for one in group),
        files_after=sum(len(one.files) for _, one in done),
        records=sum(one.count for _, one in done),
        bytes=sum(file.size for _, one in done for file in one.files),
        commits=commits,
    )
