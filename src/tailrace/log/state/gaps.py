"""Gaps: offsets that a log skips, each recorded in a file. Written by 0.1.0; since then only read.

Batches have consecutive offsets, in a compacted log, too, whose removed batches have an empty one in their place. Base
offsets are not covered by the checksum, so a skip without a gap file is a bad batch. The file `….gap`, named by the
offset at which the log ended, holds the offset at which it continues. Reads of its segment accept skipped offsets
(`Segment.has_gaps`).
"""

from collections.abc import Iterable
from typing import Final

from tailrace.log.directory.state_file import Unreadable, read_state
from tailrace.log.file_names import GAP_SUFFIX, file_name
from tailrace.log.recovery.write_back import write_back
from tailrace.ports.disk import Disk, read_file

KIND: Final = "gap"
VERSION: Final = 1


async def write_gaps_back(disk: Disk, folder: str, gaps: Iterable[int]) -> None:
    """Make the files of these gaps durable: rewrite them and fsync (`write_back` says why both)."""
    for gap in gaps:
        file = disk.open(f"{folder}/{file_name(gap, GAP_SUFFIX)}")
        try:
            await write_back(file, 0, file.size())
            await file.sync()
        finally:
            file.close()


def read_gap(disk: Disk, folder: str, end: int) -> int | None:
    """The offset at which a log that ended at `end` continues; None when the file is missing or unreadable."""
    path = f"{folder}/{file_name(end, GAP_SUFFIX)}"
    if not disk.exists(path):
        return None
    try:
        (line,) = read_state(KIND, VERSION, read_file(disk, path))
        return int(line)
    except (Unreadable, ValueError):
        return None
