"""Replacing segments by a compacted one: a crash at any point leaves either the old segments or the new one.

The new segment and its indexes are written under the name of the first old one, each file with `.cleaned` behind its
name, and are durable before anything else happens. Then the file `compacted` is written, which names the old segments
and the suffixes of the new files: from now on the new segment counts. The old files are removed, the new ones renamed,
the folder is fsynced, and `compacted` is removed. A start that finds `compacted` does these steps again, which may be
done any number of times; one that does not find it removes all `.cleaned` files.

The index of aborted transactions is one of the new files. So an aborted transaction is listed exactly as long as its
marker is in the log.
"""

import errno
from collections.abc import Sequence
from typing import Final

from tailrace.log.directory.state_file import Unreadable, read_state, write_state
from tailrace.log.file_names import (
    ABORTED_SUFFIX,
    CLEANED_SUFFIX,
    INDEX_SUFFIX,
    SEGMENT_SUFFIX,
    SWAP_NAME,
    TIMES_SUFFIX,
    file_name,
)
from tailrace.ports.disk import Disk, read_file, replace_file

VERSION: Final = 1
SUFFIXES: Final = (SEGMENT_SUFFIX, INDEX_SUFFIX, TIMES_SUFFIX, ABORTED_SUFFIX)


def cleaned_path(folder: str, base: int, suffix: str) -> str:
    return f"{folder}/{file_name(base, suffix)}{CLEANED_SUFFIX}"


async def begin_swap(disk: Disk, folder: str, bases: Sequence[int], suffixes: Sequence[str]) -> None:
    """The new files are durable: record that they replace the segments that begin at `bases`."""
    lines = [" ".join(map(str, bases)), " ".join(suffixes)]
    await replace_file(disk, f"{folder}/{SWAP_NAME}", write_state(SWAP_NAME, VERSION, lines))


def is_recorded(disk: Disk, folder: str) -> bool:
    """Whether a swap may have begun: then the next start finishes it, and the new files must not be removed."""
    return disk.exists(f"{folder}/{SWAP_NAME}")


def replace_segments(disk: Disk, folder: str, bases: Sequence[int], suffixes: Sequence[str]) -> None:
    """Remove the old files and give the new ones their names; whatever is done already is skipped."""
    for base in bases:
        for suffix in SUFFIXES:
            old = f"{folder}/{file_name(base, suffix)}"
            fresh = base == bases[0] and suffix in suffixes
            if fresh and not disk.exists(old + CLEANED_SUFFIX):
                continue  # renamed before
            if disk.exists(old):
                disk.remove(old)  # first, because it frees large files in a thread, which a rename does not
            if fresh:
                disk.rename(old + CLEANED_SUFFIX, old)


async def end_swap(disk: Disk, folder: str) -> None:
    await disk.sync_dir(folder)
    disk.remove(f"{folder}/{SWAP_NAME}")
    await disk.sync_dir(folder)


def discard_cleaned(disk: Disk, folder: str) -> bool:
    """Remove what an unfinished pass has written; returns whether there was any."""
    stray = [name for name in disk.names(folder) if name.endswith(CLEANED_SUFFIX)]
    for name in stray:
        disk.remove(f"{folder}/{name}")
    return bool(stray)


async def resume_swap(disk: Disk, folder: str) -> None:
    """Finish or undo what a crash interrupted; called before a log is opened."""
    if not disk.exists(folder):
        return
    path = f"{folder}/{SWAP_NAME}"
    if disk.exists(path):
        try:
            bases, suffixes = read_state(SWAP_NAME, VERSION, read_file(disk, path))
            replace_segments(disk, folder, list(map(int, bases.split())), suffixes.split())
        except (Unreadable, ValueError) as error:
            raise OSError(errno.EIO, f"cannot read which segments a compaction was replacing: {error}", path) from error
        await end_swap(disk, folder)
    elif discard_cleaned(disk, folder):
        await disk.sync_dir(folder)
