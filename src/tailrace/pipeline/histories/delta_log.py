"""The log of a history, in Delta's protocol: one JSON file per commit, written atomically.

We write the log ourselves, with a few actions of reader version 1 and writer version 2 that every Delta reader knows
(`add`, `remove`, `metaData`, `protocol`, `commitInfo`). Our manifest is in `commitInfo`, which other readers ignore:
the ranges that an archive added, or the merged ranges by which a compaction replaced smaller ones. A commit file is
hard-linked to its numbered name, which fails if the number is taken, so two writers cannot both get it.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from uuid import uuid4

from tailrace.pipeline.failure import HistoryDamaged, NotOurHistory
from tailrace.pipeline.histories.commit_file import Action, CommitDamaged, actions_of
from tailrace.pipeline.histories.manifest import ArchivedRange, HistoryFile, archived_range_from
from tailrace.pipeline.kafka.offsets import Offsets

FOLDER_NAME: Final = "_delta_log"
OWN_FOLDER: Final = "_tailrace"
COMMIT_NAME: Final = re.compile(r"(\d{20})\.json")


class CommitTaken(Exception):
    """Another writer has already written the commit with this number."""


@dataclass(slots=True, kw_only=True)
class Snapshot:
    """The state of the history after all commits up to `version`."""

    version: int = -1  # number of the last commit; -1: none
    history_id: str = ""
    ranges: list[ArchivedRange] = field(default_factory=list)  # in commit order
    live: dict[str, HistoryFile] = field(default_factory=dict)  # by path
    removed: dict[str, int] = field(default_factory=dict)  # by path: when a compaction replaced it, in ms since 1970
    foreign_added: list[str] = field(default_factory=list)  # paths that another program's commits added
    foreign_removed: list[str] = field(default_factory=list)  # paths that another program's commits removed
    missing_commits: list[int] = field(default_factory=list)  # numbers of commits that are missing
    damaged: dict[str, str] = field(default_factory=dict)  # damaged commits, by file name: what is wrong
    archived: Offsets = field(default_factory=dict)  # by partition, the offset up to which it is archived

    def ends(self) -> Offsets:
        """By partition, the offset up to which it is archived."""
        return dict(self.archived)

    def add(self, ranges: Sequence[ArchivedRange]) -> None:
        self.ranges += ranges
        for one in ranges:
            self.live |= {file.path: file for file in one.files}
            self.archived[one.of] = max(one.end, self.archived.get(one.of, 0))


def read_log(history: Path, known: Snapshot | None = None) -> Snapshot:
    """The current snapshot of the history; empty when there is none.

    `NotOurHistory` when the folder holds another program's table; `HistoryDamaged` when a commit is not complete, since
    it is then unknown what the commit added. With `known`, only later commits are read and applied to `known`, so that
    a log of thousands of commits is not read again each time."""
    snapshot = read_undamaged_commits(history, known)
    for name, wrong in snapshot.damaged.items():
        raise HistoryDamaged(
            f"the commit {history / FOLDER_NAME / name} is damaged: {wrong}. Put it back from a copy; `tailrace "
            "pipeline audit` says what else is wrong"
        )
    return snapshot


def read_undamaged_commits(history: Path, known: Snapshot | None = None) -> Snapshot:
    """Like `read_log`, but list damaged commits in `Snapshot.damaged` instead of raising `HistoryDamaged`."""
    snapshot = Snapshot() if known is None else known
    for version, path in commits(history) if snapshot.version < 0 else _later_commits(history, snapshot.version):
        snapshot.missing_commits += range(snapshot.version + 1, version)
        snapshot.version = version
        try:
            for action in actions_of(path):
                apply(snapshot, action)
        except CommitDamaged as damaged:
            snapshot.damaged[path.name] = str(damaged)
        except (LookupError, TypeError, ValueError, AttributeError) as error:  # parts are missing or of the wrong type
            snapshot.damaged[path.name] = f"its manifest cannot be read: {error!r}"
    founding = f"{0:020d}.json"
    if snapshot.version >= 0 and not snapshot.history_id and founding not in snapshot.damaged:
        raise NotOurHistory(f"{history} holds a Delta table that is no history of Tailrace")
    return snapshot


def commits(history: Path) -> list[tuple[int, Path]]:
    folder = history / FOLDER_NAME
    if not folder.is_dir():
        return []
    found = [(COMMIT_NAME.fullmatch(path.name), path) for path in folder.iterdir()]
    return sorted((int(match[1]), path) for match, path in found if match)


def _later_commits(history: Path, version: int) -> Iterator[tuple[int, Path]]:
    """The consecutive commits after `version`, found by name without listing the whole folder."""
    while (path := history / FOLDER_NAME / f"{version + 1:020d}.json").exists():
        version += 1
        yield version, path


def commit(history: Path, version: int, actions: Iterable[Action]) -> None:
    """Write one commit. `CommitTaken` when another commit has its number."""
    folder = history / FOLDER_NAME
    folder.mkdir(parents=True, exist_ok=True)
    fresh, final = folder / f".{version}.{uuid4().hex}", folder / f"{version:020d}.json"
    with fresh.open("w") as file:
        file.writelines(json.dumps(action, sort_keys=True) + "\n" for action in actions)
        file.flush()
        os.fsync(file.fileno())
    _take_number(fresh, final)
    sync_folder(folder)


def _take_number(fresh: Path, final: Path) -> None:
    """Hard-link `fresh` to its final name, which fails if that file exists: only one writer gets each number."""
    try:
        os.link(fresh, final)
    except FileExistsError:
        raise CommitTaken(f"{final.name} is there already") from None
    finally:
        fresh.unlink()


def sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def add_actions(ranges: Sequence[ArchivedRange], now_ms: int) -> list[Action]:
    """Delta's `add` actions for the files of new ranges."""
    return [add_action(one, file, now_ms) for one in ranges for file in one.files]


def remove_action(one: ArchivedRange, file: HistoryFile, now_ms: int) -> Action:
    """Delta's `remove` action for a file whose records are in another file now."""
    return {
        "remove": {
            "path": file.path,
            "deletionTimestamp": now_ms,
            "dataChange": False,
            "extendedFileMetadata": True,
            "partitionValues": {"topic": one.topic, "date": file.date},
            "size": file.size,
        }
    }


def add_action(one: ArchivedRange, file: HistoryFile, now_ms: int, *, is_new: bool = True) -> Action:
    bounds = {"minValues": {"offset": file.first}, "maxValues": {"offset": file.last}}
    tags = {"first": file.first, "last": file.last, "count": file.count, "crc32c": file.crc, "content": file.content}
    return {
        "add": {
            "path": file.path,
            "partitionValues": {"topic": one.topic, "date": file.date},
            "size": file.size,
            "modificationTime": now_ms,
            "dataChange": is_new,
            "stats": json.dumps({"numRecords": file.count, **bounds}),
            "tags": {f"tailrace.{name}": str(value) for name, value in tags.items()},
        }
    }


def apply(snapshot: Snapshot, action: Action) -> None:
    """Apply one action of a commit; in our commits, the manifest comes before the `add` and `remove` actions."""
    if "metaData" in action:
        snapshot.history_id = action["metaData"].get("configuration", {}).get("tailrace.history", "")
    elif "commitInfo" in action and "tailrace" in action["commitInfo"]:
        told = action["commitInfo"]["tailrace"]
        merged = [archived_range_from(one) for one in told.get("merged", ())]
        added = [archived_range_from(one) for one in told.get("ranges", ())]
        for one in merged:
            _replace(snapshot, one, action["commitInfo"]["timestamp"])
        snapshot.add([*added, *merged])
    elif "remove" in action:
        if snapshot.live.pop(action["remove"]["path"], None) is not None:
            snapshot.foreign_removed.append(action["remove"]["path"])
    elif "add" in action and action["add"]["path"] not in snapshot.live:
        snapshot.foreign_added.append(action["add"]["path"])


def _replace(snapshot: Snapshot, merged: ArchivedRange, when_ms: int) -> None:
    """Remove the ranges that a merged range replaces."""
    inside = [one.of == merged.of and merged.start <= one.start < merged.end for one in snapshot.ranges]
    old = [one for one, is_inside in zip(snapshot.ranges, inside, strict=True) if is_inside]
    snapshot.ranges = [one for one, is_inside in zip(snapshot.ranges, inside, strict=True) if not is_inside]
    for file in (file for one in old for file in one.files):
        snapshot.live.pop(file.path, None)
        snapshot.removed[file.path] = when_ms
