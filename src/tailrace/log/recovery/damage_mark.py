"""The mark of damage that was found while a broker ran: where the next start has to look again.

A start reads only what the last recovery point does not cover. Damage that lies deeper is found by whoever reads there,
and would be forgotten with the process: the replica would vote and lead again until somebody reads there once more. So
the offset is written down in the log's own folder. A start with such a mark cuts nothing there, and reads the segment
that holds the offset. If that is whole by now, because a good copy was put in its place, or lies below the log's start,
the mark goes; a log that is filled anew loses it with everything else. A mark that cannot be read counts as one at the
log's start.
"""

import logging
from typing import Final

from tailrace.log.directory.state_file import Unreadable, read_state, write_state
from tailrace.log.file_names import DAMAGED_NAME, SEGMENT_SUFFIX
from tailrace.log.recovery.found import Damage, Recovered
from tailrace.log.recovery.segment_walk import walk_in_turns
from tailrace.log.segment import Segment
from tailrace.ports.disk import Disk, read_file, replace_file

logger: Final = logging.getLogger(__name__)

VERSION: Final = 1
ANYWHERE: Final = -1


def load_mark(disk: Disk, folder: str) -> int | None:
    """Where damage was found, `anywhere` if that cannot be read; None: nowhere."""
    path = f"{folder}/{DAMAGED_NAME}"
    if not disk.exists(path):
        return None
    try:
        (line,) = read_state(DAMAGED_NAME, VERSION, read_file(disk, path))
        return int(line)
    except (Unreadable, ValueError):
        return ANYWHERE


async def mark(disk: Disk, folder: str, offset: int) -> None:
    """Best effort: without it the next reader finds the damage again."""
    try:
        await replace_file(disk, f"{folder}/{DAMAGED_NAME}", write_state(DAMAGED_NAME, VERSION, [str(offset)]))
    except OSError as error:
        logger.error("%s: that it is damaged could not be written down: %s", folder, error)


async def look_again(disk: Disk, folder: str, found: Recovered, marked: int) -> Damage | None:
    """What is still damaged where the mark says, in a log that was found whole otherwise."""
    offset = found.start if marked == ANYWHERE else marked
    homes = [segment for segment in found.segments if segment.base <= offset and found.start <= offset < found.end]
    damage = await _look_through(homes[-1], offset) if homes else None
    if damage is None:
        logger.info("%s: offset %d can be read again, or is gone", folder, offset)
        disk.remove(f"{folder}/{DAMAGED_NAME}")
        await disk.sync_dir(folder)
    return damage


async def _look_through(segment: Segment, offset: int) -> Damage | None:
    file, expected, position = segment.path_of(SEGMENT_SUFFIX), segment.base, 0
    async for found in walk_in_turns(segment.file, 0, segment.size, check=True):
        header, position, problem = found.header, found.position, found.problem
        if header is not None and header.base_offset != expected and not segment.has_gaps:
            problem = problem or f"a batch with offsets {header.base_offset} to {header.last_offset}"
        if problem is not None or header is None:
            return Damage(file=file, position=position, offset=expected, reason=problem or "unreadable")
        expected, position = header.last_offset + 1, position + header.size
    if expected > offset:
        return None
    return Damage(file=file, position=position, offset=expected, reason=f"what holds offset {offset} is missing")
