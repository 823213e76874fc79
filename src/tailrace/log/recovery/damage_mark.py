"""The file `damaged`: an offset where damage was found while the broker ran, for the next start to check.

A start reads only what lies above the last recovery point. Damage below it is found by a read, and would be forgotten
when the process ends: the replica would vote and lead again until that offset is read once more. So the offset is
recorded in the log's own folder. A start with such a mark truncates nothing there, and reads the whole segment that
holds the offset. The mark is removed when that segment is intact, because a good copy was put in its place, or when the
offset lies below the log start. A log that is refilled loses it with all its other files. An unreadable mark counts as
one at the log start.
"""

import logging
from typing import Final

from tailrace.log.directory.state_file import Unreadable, read_state, write_state
from tailrace.log.file_names import DAMAGED_NAME, SEGMENT_SUFFIX
from tailrace.log.recovery.recovered import Damage, Recovered
from tailrace.log.segment import Segment
from tailrace.log.segment_walk import walk_in_turns
from tailrace.ports.disk import Disk, read_file, replace_file

logger: Final = logging.getLogger(__name__)

VERSION: Final = 1
ANYWHERE: Final = -1  # the mark is unreadable


def load_mark(disk: Disk, folder: str) -> int | None:
    """The offset where damage was found, or `ANYWHERE`; None without a mark."""
    path = f"{folder}/{DAMAGED_NAME}"
    if not disk.exists(path):
        return None
    try:
        (line,) = read_state(DAMAGED_NAME, VERSION, read_file(disk, path))
        return int(line)
    except (Unreadable, ValueError):
        return ANYWHERE


async def mark(disk: Disk, folder: str, offset: int) -> None:
    """Best effort: without the mark the next read finds the damage again."""
    try:
        await replace_file(disk, f"{folder}/{DAMAGED_NAME}", write_state(DAMAGED_NAME, VERSION, [str(offset)]))
    except OSError as error:
        logger.error(
            "%s: cannot write the mark %s, so the next start may not notice the damage at offset %d: %s",
            folder,
            DAMAGED_NAME,
            offset,
            error,
        )


async def check_again(disk: Disk, folder: str, recovered: Recovered, marked: int) -> Damage | None:
    """Read the segment with the marked offset, in a log without other damage; remove the mark if it is intact."""
    offset = recovered.start if marked == ANYWHERE else marked
    inside = recovered.start <= offset < recovered.end
    segments = [segment for segment in recovered.segments if segment.base <= offset] if inside else []
    damage = await _check_segment(segments[-1], offset) if segments else None
    if damage is None:
        state = "is readable again" if inside else "is no longer in the log"
        logger.info("%s: offset %d, which was marked as damaged, %s: removing the mark", folder, offset, state)
        disk.remove(f"{folder}/{DAMAGED_NAME}")
        await disk.sync_dir(folder)
    return damage


async def _check_segment(segment: Segment, offset: int) -> Damage | None:
    file, expected, position = segment.path_of(SEGMENT_SUFFIX), segment.base, 0
    async for batch in walk_in_turns(segment.file, 0, segment.size, check=True):
        header, position, problem = batch.header, batch.position, batch.problem
        if header is not None and header.base_offset != expected and not segment.has_gaps:
            problem = problem or (
                f"the batch has offsets {header.base_offset} to {header.last_offset}, expected offset {expected}"
            )
        if problem is not None or header is None:
            return Damage(file=file, position=position, offset=expected, reason=problem or "unreadable")
        expected, position = header.last_offset + 1, position + header.size
    if expected > offset:
        return None
    return Damage(file=file, position=position, offset=expected, reason=f"the batch with offset {offset} is missing")
