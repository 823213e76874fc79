"""The two sparse indexes of a segment: from an offset, or a timestamp, to the batch where a search starts.

Each index is a pair of columns whose numbers rise strictly from entry to entry. They are kept in `array`s: a lookup is
one bisection in C, and an entry takes its 8 or 12 bytes. On disk the columns are interleaved and big-endian, in Kafka's
format. `load` raises `Unreadable` for data that cannot be an index of its segment; the caller then rebuilds the index
from the segment.
"""

import sys
from array import array
from bisect import bisect_left, bisect_right
from operator import lt
from typing import Final, Self

from tailrace.log.directory.state_file import Unreadable

OFFSET_ENTRY_BYTES: Final = 8
TIME_ENTRY_BYTES: Final = 12
RELATIVE_OFFSET_MAX: Final = 2**31 - 1
_SWAP: Final = sys.byteorder == "little"

assert array("I").itemsize == 4


class OffsetIndex:
    """For some batches: base offset, relative to the segment's, and position in the file."""

    __slots__ = ("offsets", "positions")

    def __init__(self) -> None:
        self.offsets = array("I")
        self.positions = array("I")

    def __len__(self) -> int:
        return len(self.offsets)

    def add(self, offset: int, position: int) -> None:
        self.offsets.append(offset)
        self.positions.append(position)

    def lookup(self, offset: int) -> tuple[int, int]:
        """Offset and position of the last entry at or below `offset`; (0, 0), the segment's start, has no entry."""
        found = bisect_right(self.offsets, offset) - 1
        return (self.offsets[found], self.positions[found]) if found >= 0 else (0, 0)

    def truncate_to(self, offset: int) -> None:
        """Remove the entries at `offset` and above."""
        kept = bisect_left(self.offsets, offset)
        del self.offsets[kept:], self.positions[kept:]

    def dump(self, skip: int = 0) -> bytes:
        both = array("I", bytes(OFFSET_ENTRY_BYTES * (len(self.offsets) - skip)))
        both[0::2] = self.offsets[skip:]
        both[1::2] = self.positions[skip:]
        if _SWAP:
            both.byteswap()
        return both.tobytes()

    @classmethod
    def load(cls, data: bytes, segment_size: int) -> Self:
        if len(data) % OFFSET_ENTRY_BYTES:
            raise Unreadable(f"offset index: {len(data)} bytes are not a whole number of entries")
        both = array("I", data)
        if _SWAP:
            both.byteswap()
        index = cls()
        index.offsets, index.positions = both[0::2], both[1::2]
        if not (_rises_strictly(index.offsets) and _rises_strictly(index.positions)):
            raise Unreadable("offset index: the entries are not in ascending order")
        if index.positions and index.positions[-1] >= segment_size:
            raise Unreadable(f"offset index: an entry points past the segment's {segment_size} bytes")
        return index


class TimeIndex:
    """For some batches with a higher timestamp than all batches before: that timestamp and the relative base offset."""

    __slots__ = ("offsets", "timestamps")

    def __init__(self) -> None:
        self.timestamps = array("q")
        self.offsets = array("I")

    def __len__(self) -> int:
        return len(self.offsets)

    def add(self, timestamp: int, offset: int) -> None:
        self.timestamps.append(timestamp)
        self.offsets.append(offset)

    def lookup(self, timestamp: int) -> int:
        """A relative offset below which every record is older than `timestamp`."""
        found = bisect_left(self.timestamps, timestamp) - 1
        return self.offsets[found] if found >= 0 else 0

    def last_entry_below(self, offset: int) -> tuple[int, int] | None:
        """Timestamp and offset of the last entry whose batch begins below `offset`."""
        found = bisect_left(self.offsets, offset) - 1
        return (self.timestamps[found], self.offsets[found]) if found >= 0 else None

    def truncate_to(self, offset: int) -> None:
        """Remove the entries at `offset` and above."""
        kept = bisect_left(self.offsets, offset)
        del self.timestamps[kept:], self.offsets[kept:]

    def dump(self, skip: int = 0) -> bytes:
        timestamps = self.timestamps[skip:]
        offsets = self.offsets[skip:]
        if _SWAP:
            timestamps.byteswap()
            offsets.byteswap()
        halves = array("I", timestamps.tobytes())
        thirds = array("I", bytes(TIME_ENTRY_BYTES * len(offsets)))
        thirds[0::3], thirds[1::3], thirds[2::3] = halves[0::2], halves[1::2], offsets
        return thirds.tobytes()

    @classmethod
    def load(cls, data: bytes) -> Self:
        if len(data) % TIME_ENTRY_BYTES:
            raise Unreadable(f"time index: {len(data)} bytes are not a whole number of entries")
        thirds = array("I", data)
        halves = array("I", bytes(8 * (len(thirds) // 3)))
        halves[0::2], halves[1::2] = thirds[0::3], thirds[1::3]
        index = cls()
        index.timestamps, index.offsets = array("q", halves.tobytes()), thirds[2::3]
        if _SWAP:
            index.timestamps.byteswap()
            index.offsets.byteswap()
        if not (_rises_strictly(index.timestamps) and _rises_strictly(index.offsets)):
            raise Unreadable("time index: the entries are not in ascending order")
        return index


def _rises_strictly(column: "array[int]") -> bool:
    return all(map(lt, column, column[1:]))
