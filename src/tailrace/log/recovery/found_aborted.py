"""The aborted transactions of a log that is being opened: from files below the recovery point, from the scan above."""

from collections.abc import Sequence

from tailrace.log.directory.state_file import Unreadable
from tailrace.log.file_names import ABORTED_SUFFIX, offsets_named
from tailrace.log.segment import Segment
from tailrace.log.state.aborted_index import AbortedIndex, AbortedIndexes
from tailrace.ports.disk import Disk, read_file


def found_aborted(
    disk: Disk, names: Sequence[str], segments: Sequence[Segment], home: int, target: int
) -> AbortedIndexes:
    """What is known below `target`, which lies in segment `home`; those after that are scanned from their beginning."""
    found, there = AbortedIndexes(), dict.fromkeys(offsets_named(names, ABORTED_SUFFIX))
    for number, segment in enumerate(segments):
        if segment.base not in there:
            continue
        if number < home:
            found.know(segment.base, None)
        elif number == home:
            found.know(segment.base, _index(read_file(disk, segment.path_of(ABORTED_SUFFIX)), target))
        else:
            found.know(segment.base, AbortedIndex())
    return found


def _index(data: bytes, end: int) -> AbortedIndex | None:
    """What a file says of the segment up to `end`; None when it cannot be read."""
    try:
        index = AbortedIndex.load(data)
    except Unreadable:
        return None
    index.cut(end)
    return index
