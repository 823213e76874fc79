"""Is a history sound enough to change its files? Its log whole and ours alone, and every file there in its size.

That costs a look into the folder, not a reading of all bytes: the audit does that, and a compaction of what it merges.
"""

from pathlib import Path

from tailrace.pipeline.failure import NotOurHistory, PipelineFailed
from tailrace.pipeline.histories.committing import noted_last
from tailrace.pipeline.histories.delta_log import Snapshot
from tailrace.pipeline.histories.reading import snapshot_of


def sound_snapshot(folder: Path) -> Snapshot:
    """The history as it is. `PipelineFailed` when its files are better left as they are."""
    noted = noted_last(folder)  # before the log, which an archive may be adding to
    snapshot = snapshot_of(folder)
    missing = [*snapshot.holes, *range(snapshot.version + 1, noted + 1)]
    if missing:
        raise PipelineFailed(
            f"commit {missing[0]} of {folder} is missing, and nobody can tell which files it names; nothing was "
            "changed. `tailrace pipeline audit` says more"
        )
    if snapshot.strangers or snapshot.taken_out:
        path = [*snapshot.strangers, *snapshot.taken_out][0]
        raise NotOurHistory(f"another program has changed {folder} ({path}); nothing was changed")
    for path, file in snapshot.live.items():
        if not (folder / path).is_file() or (folder / path).stat().st_size != file.size:
            raise PipelineFailed(
                f"{path} is not there as it was written; nothing was changed. `tailrace pipeline audit` says more"
            )
    return snapshot
