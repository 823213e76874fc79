"""Commit the files that tasks have written to the history: one commit per batch.

Before a commit, every range must account for all its offsets, and begin where the history of its partition ends. A
compaction may commit at the same time; it does not affect these conditions, and the batch takes the next commit number.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from uuid import uuid4

from tailrace.pipeline.failure import NotOurHistory, PipelineFailed
from tailrace.pipeline.histories.commit_file import ENGINE, Action
from tailrace.pipeline.histories.delta_log import (
    OWN_FOLDER,
    CommitTaken,
    Snapshot,
    add_actions,
    commit,
    read_log,
    sync_folder,
)
from tailrace.pipeline.histories.locking import blocking_lock
from tailrace.pipeline.histories.manifest import ArchivedRange
from tailrace.pipeline.histories.spark_columns import spark_schema_json
from tailrace.pipeline.kafka.offsets import Offsets

LAST_COMMIT_NAME: Final = "last-commit"


def open_or_create(history: Path) -> Snapshot:
    """The current history, created if there is none. `NotOurHistory` when the folder holds anything else."""
    snapshot = snapshot_for_writing(history)
    if snapshot.version >= 0:
        return snapshot
    try:
        commit(history, 0, _create_actions(str(uuid4())))
    except CommitTaken:
        raise NotOurHistory(f"another program has just created a table in {history}") from None
    save_last_commit(history, 0)
    return read_log(history)


def snapshot_for_writing(history: Path) -> Snapshot:
    """The history in this folder, empty when there is none yet. `NotOurHistory` when it holds anything else."""
    if history.exists() and not history.is_dir():
        raise NotOurHistory(f"{history} is a file: give a folder")
    snapshot = read_log(history)
    is_taken = history.is_dir() and any(history.iterdir()) and not (history / OWN_FOLDER).is_dir()
    if snapshot.version < 0 and is_taken:
        raise NotOurHistory(f"{history} is not empty, and holds no history of Tailrace: give another folder")
    return snapshot


def commit_batch(history: Path, ranges: Sequence[ArchivedRange], known: Snapshot | None = None) -> None:
    """Commit a batch. `known`, an earlier snapshot of the history, is brought up to date."""
    for folder in dict.fromkeys((history / file.path).parent for one in ranges for file in one.files):
        sync_folder(folder)
    while True:
        snapshot = read_log(history, known)
        check_ranges(snapshot, ranges)
        version = snapshot.version + 1
        try:
            commit(history, version, _actions(ranges))
            break
        except CommitTaken:
            continue
    save_last_commit(history, version)
    if known is not None:
        read_log(history, known)


def _actions(ranges: Sequence[ArchivedRange]) -> list[Action]:
    now_ms = int(time.time() * 1000)
    told = {"ranges": [one.to_dict() for one in ranges]}
    return [
        {"commitInfo": {"timestamp": now_ms, "operation": "ARCHIVE", "engineInfo": ENGINE, "tailrace": told}},
        *add_actions(ranges, now_ms),
    ]


def check_ranges(snapshot: Snapshot, ranges: Sequence[ArchivedRange]) -> None:
    ends = snapshot.ends()
    for one in sorted(ranges, key=lambda one: (one.of, one.start, one.end)):
        _demand_whole(one)
        _demand_next(one, ends)
        ends[one.of] = one.end


def _demand_whole(one: ArchivedRange) -> None:
    """Check that the range accounts for each of its offsets."""
    if not one.is_whole:
        lost = f"{one.of} {one.start}…{one.end - 1}: not all offsets are accounted for"
        raise PipelineFailed(f"{lost}; nothing was committed")


def _demand_next(one: ArchivedRange, ends: Offsets) -> None:
    """Check that the range begins where the history of its partition ends."""
    if one.start != ends.get(one.of, one.start):
        raise PipelineFailed(
            f"{one.of} is archived up to {ends[one.of]}, but this batch begins at {one.start}; nothing was "
            "committed. Another archive writes to this folder; stop one of them"
        )


def save_last_commit(history: Path, version: int) -> None:
    """Write down the number of the last commit, so that an audit notices if the last commits are missing."""
    with blocking_lock(history):
        fresh = history / OWN_FOLDER / f".{LAST_COMMIT_NAME}"
        fresh.write_text(f"{max(version, saved_last_commit(history))}\n")
        fresh.replace(history / OWN_FOLDER / LAST_COMMIT_NAME)


def saved_last_commit(history: Path) -> int:
    try:
        return int((history / OWN_FOLDER / LAST_COMMIT_NAME).read_text())
    except (OSError, ValueError):
        return -1


def _create_actions(history_id: str) -> list[Action]:
    return [
        {"commitInfo": {"timestamp": int(time.time() * 1000), "operation": "CREATE TABLE", "engineInfo": ENGINE}},
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {
            "metaData": {
                "id": history_id,
                "format": {"provider": "parquet", "options": {}},
                "schemaString": spark_schema_json(),
                "partitionColumns": ["topic", "date"],
                "configuration": {"tailrace.history": history_id},
                "createdTime": int(time.time() * 1000),
            }
        },
    ]
