"""The aborted transactions of a log that is being opened: from files below the recovery point, from the scan above."""

from collections.abc import Sequence

from tailrace.log.aborted import AbortedIndex, AbortedIndexes
from tailrace.log.names import aborted_suffix, offsets_named
from tailrace.log.segment import Segment
from tailrace.log.state_file import Unreadable
from tailrace.ports.disk import Disk, read_file


def found_aborted(disk: Disk, names: Sequence[str], home: Segment, target: int) -> AbortedIndexes:
    """What is known below `target`, which lies in `home`; the segments after that are scanned from their beginning."""
    found = AbortedIndexes()
    for base in offsets_named(names, aborted_suffix):
        if base < home.base:
            found.know(base, None)
        elif base == home.base:
            found.know(base, _index(read_file(disk, home.path_of(aborted_suffix)), target))
        else:
            found.know(base, AbortedIndex())
    return found


def _index(data: bytes, end: int) -> AbortedIndex | None:
    """What a file says of the segment up to `end`; None when it cannot be read."""
    try:
        index = AbortedIndex.load(data)
    except Unreadable:
        return None
    index.cut(end)
    return index
