"""How far a log is compacted, and since when: the file `cleaner`.

    clean 1200          everything below offset 1200 went through a pass
    covered 800 17…     at this time a pass had covered everything below offset 800
    covered 1200 17…

Tombstones and transaction markers are removed some time after a pass first covered them (`delete.retention.ms`), so the
file keeps when that was for some offsets. It keeps a bounded number of them: where there are more, the oldest but one
is dropped, so that the time of an offset is never reported too early. The file is only a hint of where to go on: if it
is missing, older than the log, or unreadable, the log is compacted from its start.
"""

from typing import Final

from tailrace.log.directory.state_file import Unreadable, read_state, write_state
from tailrace.log.file_names import CLEANER_NAME
from tailrace.model.frozen import frozen
from tailrace.model.limits import COMPACTION_TIMES_KEPT_MAX
from tailrace.ports.disk import Disk, read_file, replace_file

VERSION: Final = 1


@frozen
class CleanState:
    clean_to: int = 0
    covered: tuple[tuple[int, int], ...] = ()  # (offset, time) of passes, ascending in both

    def after_pass(self, upto: int, now_ms: int) -> "CleanState":
        """The state after a pass that covered everything below `upto`."""
        covered = self.covered
        if upto > (covered[-1][0] if covered else 0):
            covered = (*covered, (upto, now_ms))
        if len(covered) > COMPACTION_TIMES_KEPT_MAX:
            covered = (covered[0], *covered[2:])
        return CleanState(clean_to=upto, covered=covered)

    def covered_since(self, before_ms: int) -> int:
        """The offset below which everything was covered by a pass at `before_ms` or earlier."""
        return max((offset for offset, time_ms in self.covered if time_ms <= before_ms), default=0)


def load_clean_state(disk: Disk, folder: str, end: int) -> CleanState:
    """The state of a log that ends at `end`."""
    path = f"{folder}/{CLEANER_NAME}"
    if not disk.exists(path):
        return CleanState()
    try:
        clean, *lines = (line.split() for line in read_state(CLEANER_NAME, VERSION, read_file(disk, path)))
        state = CleanState(clean_to=int(clean[1]), covered=tuple((int(row[1]), int(row[2])) for row in lines))
    except (Unreadable, ValueError, IndexError):
        return CleanState()
    return state if state.clean_to <= end else CleanState()


async def store_clean_state(disk: Disk, folder: str, state: CleanState) -> None:
    lines = [f"clean {state.clean_to}", *(f"covered {offset} {time_ms}" for offset, time_ms in state.covered)]
    await replace_file(disk, f"{folder}/{CLEANER_NAME}", write_state(CLEANER_NAME, VERSION, lines))
