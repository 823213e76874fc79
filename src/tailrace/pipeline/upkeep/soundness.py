"""Check that a history is safe to modify: its log is complete, only Tailrace wrote it, and file sizes match the log.

This check lists files but does not read their bytes. An audit reads all bytes; a compaction reads those it merges.
"""

from pathlib import Path

from tailrace.pipeline.failure import NotOurHistory, PipelineFailed
from tailrace.pipeline.histories.committing import noted_last
from tailrace.pipeline.histories.delta_log import Snapshot
from tailrace.pipeline.histories.reading import snapshot_of


def sound_snapshot(folder: Path) -> Snapshot:
    """The current snapshot of the history. `PipelineFailed` when it is not safe to change its files."""
    noted = noted_last(folder)  # read before the log, because an archive may be adding commits
    snapshot = snapshot_of(folder)
    missing = [*snapshot.holes, *range(snapshot.version + 1, noted + 1)]
    if missing:
        raise PipelineFailed(
            f"commit {missing[0]} of {folder} is missing, so the files that it names are unknown; nothing was "
            "changed. `tailrace pipeline audit` says more"
        )
    if snapshot.strangers or snapshot.taken_out:
        path = [*snapshot.strangers, *snapshot.taken_out][0]
        raise NotOurHistory(f"another program has changed {folder} ({path}); nothing was changed")
    for path, file in snapshot.live.items():
        if not (folder / path).is_file() or (folder / path).stat().st_size != file.size:
            raise PipelineFailed(
                f"{path} is missing or its size has changed; nothing was changed. `tailrace pipeline audit` says more"
            )
    return snapshot
