"""Compare a history's log with the files in its folder, while an archive may be running.

A writer gives files their names, then commits them, then notes the commit's number. The audit reads in another order:
the noted number first, then the folder, then the log, which is thus at least as new as both. If a file is still not in
the log and a writer is running, the file is about to be committed. If no writer is running, the log is read again,
since a writer may have just finished; a file that is still unknown is a stray file.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tailrace.pipeline.histories.committing import saved_last_commit
from tailrace.pipeline.histories.delta_log import FOLDER_NAME, OWN_FOLDER, Snapshot
from tailrace.pipeline.histories.findings import Finding
from tailrace.pipeline.histories.locking import is_locked
from tailrace.pipeline.histories.reading import undamaged_snapshot_of


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderCheck:
    snapshot: Snapshot
    findings: list[Finding]
    notes: list[str]


def check_folder(folder: Path) -> FolderCheck:
    """Compare log and folder. `NotOurHistory` when there is no history in the folder."""
    noted, there = saved_last_commit(folder), _data_files(folder)
    snapshot = undamaged_snapshot_of(folder)
    findings, notes = list(_log_findings(snapshot, noted)), []
    stray = _uncommitted(there, snapshot)
    if stray and (is_locked(folder, "archive") or is_locked(folder, "upkeep")):
        notes.append(
            f"{len(stray)} files are in no commit yet, such as {stray[0]}: an archive or a compaction is at work. "
            "Run the audit again when that has ended"
        )
    elif stray:
        latest = undamaged_snapshot_of(folder)
        findings += [_stray(name, latest) for name in _uncommitted(stray, latest)]
    return FolderCheck(snapshot=snapshot, findings=findings, notes=notes)


def _log_findings(snapshot: Snapshot, noted: int) -> Iterator[Finding]:
    for version in snapshot.missing_commits:
        yield Finding(kind="missing commit", what=f"commit {version} is not in the log", file=f"{version:020d}.json")
    for version in range(snapshot.version + 1, noted + 1):
        yield Finding(kind="missing commit", what=f"commit {version} was there", file=f"{version:020d}.json")
    for name, wrong in snapshot.damaged.items():
        yield Finding(kind="damaged commit", what=wrong, file=name)
    for path in snapshot.foreign_added:
        yield Finding(kind="foreign commit", what="another program has added this file", file=path)
    for path in snapshot.foreign_removed:
        yield Finding(kind="foreign commit", what="another program has removed this file", file=path)


def _data_files(folder: Path) -> list[str]:
    """Paths of the files that a reader of the folder, without the log, would read."""
    found = [path for path in sorted(folder.rglob("*.parquet")) if path.name[0] not in "._"]
    names = [str(path.relative_to(folder)) for path in found]
    return [name for name in names if not name.startswith((OWN_FOLDER, FOLDER_NAME))]


def _uncommitted(names: list[str], snapshot: Snapshot) -> list[str]:
    return [name for name in names if name not in snapshot.live and name not in snapshot.removed]


def _stray(name: str, snapshot: Snapshot) -> Finding:
    what = "no commit names it; remove it, or find out who wrote it"
    if snapshot.missing_commits or snapshot.damaged:
        what = "no commit names it, of those that can be read; keep it"
    return Finding(kind="stray file", what=what, file=name)
