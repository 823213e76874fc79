"""Check that a history is safe to modify: its log is complete, only Tailrace wrote it, and file sizes match the log.

This check lists files but does not read their bytes. An audit reads all bytes; a compaction reads those it merges.
"""

from pathlib import Path

from tailrace.pipeline.failure import NotOurHistory, PipelineFailed
from tailrace.pipeline.histories.committing import saved_last_commit
from tailrace.pipeline.histories.delta_log import Snapshot
from tailrace.pipeline.histories.reading import snapshot_of


def checked_snapshot(folder: Path) -> Snapshot:
    """The current snapshot of the history. `PipelineFailed` when it is not safe to change its files."""
    noted = saved_last_commit(folder)  # read before the log, because an archive may be adding commits
    snapshot = snapshot_of(folder)
    missing = [*snapshot.missing_commits, *range(snapshot.version + 1, noted + 1)]
    if missing:
        raise PipelineFailed(
            f"commit {missing[0]} of {folder} is missing, so the files that it names are unknown; nothing was "
            "changed. `tailrace pipeline audit` says more"
        )
    if snapshot.foreign_added or snapshot.foreign_removed:
        path = [*snapshot.foreign_added, *snapshot.foreign_removed][0]
        raise NotOurHistory(f"another program has changed {folder} ({path}); nothing was changed")
    for path, file in snapshot.live.items():
        if not (folder / path).is_file() or (folder / path).stat().st_size != file.size:
            raise PipelineFailed(
                f"{path} is missing or its size has changed; nothing was changed. `tailrace pipeline audit` says more"
            )
    return snapshot
