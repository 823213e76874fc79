"""Offsets that a log skips, written down.

A leader's batches follow on each other without a gap; only a follower of a compacted log gets batches that do not.
Base offsets have no checksum, so a gap that nobody wrote down is a bad batch, not a gap. The file `….gap`, named by the
offset at which the log ended, holds the offset at which it goes on. It is synced in the same round as the batch behind
it, and its segment is read with that in mind (`Segment.has_gaps`).
"""

from collections.abc import Iterable
from typing import Final

from tailrace.log.directory.state_file import Unreadable, read_state, write_state
from tailrace.log.file_names import GAP_SUFFIX, named
from tailrace.log.recovery.write_back import write_back
from tailrace.ports.disk import Disk, File, read_file

KIND: Final = "gap"
VERSION: Final = 1


def write_gap(disk: Disk, folder: str, end: int, goes_on: int) -> File:
    """Write a gap down; the caller syncs file and folder."""
    file = disk.open(f"{folder}/{named(end, GAP_SUFFIX)}")
    data = write_state(KIND, VERSION, [str(goes_on)])
    file.write(data, 0)
    file.truncate(len(data))
    return file


async def write_gaps_back(disk: Disk, folder: str, gaps: Iterable[int]) -> None:
    """What was read of these gaps counts as durable soon: write it again, and sync (`write_back`)."""
    for gap in gaps:
        file = disk.open(f"{folder}/{named(gap, GAP_SUFFIX)}")
        try:
            await write_back(file, 0, file.size())
            await file.sync()
        finally:
            file.close()


def read_gap(disk: Disk, folder: str, end: int) -> int | None:
    """Where a log that ended at `end` goes on; None when nothing can be read there."""
    path = f"{folder}/{named(end, GAP_SUFFIX)}"
    if not disk.exists(path):
        return None
    try:
        (line,) = read_state(KIND, VERSION, read_file(disk, path))
        return int(line)
    except (Unreadable, ValueError):
        return None
