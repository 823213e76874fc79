"""The mark of a truncation: a recovery point above it no longer holds.

Recovery points of all partitions stand in one file that is written from time to time. A log that is truncated below its
point would look damaged after a crash. So the cut is marked in the log's own folder, durably, before it is made; the
mark goes when a later point has surely been recorded. A mark that cannot be read counts as one at 0: all is scanned.
"""

from typing import Final

from tailrace.log.directory.state_file import Unreadable, read_state, write_state
from tailrace.log.file_names import CUT_NAME
from tailrace.ports.disk import Disk, read_file, replace_file

VERSION: Final = 1


def load_cut(disk: Disk, folder: str) -> int:
    try:
        (line,) = read_state(CUT_NAME, VERSION, read_file(disk, f"{folder}/{CUT_NAME}"))
        return int(line)
    except (Unreadable, ValueError):
        return 0


async def store_cut(disk: Disk, folder: str, offset: int) -> None:
    await replace_file(disk, f"{folder}/{CUT_NAME}", write_state(CUT_NAME, VERSION, [str(offset)]))
