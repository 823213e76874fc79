"""Sparse indexes of one segment: from an offset, or a timestamp, to where one should start to look.

Both are columns of numbers that rise from entry to entry, kept in `array`s: a lookup is one bisection in C, and an
entry costs its 8 or 12 bytes. On disk the columns stand interleaved and big-endian, in Kafka's form. `load` refuses
what cannot be an index of its segment; the caller makes a new one from the segment then.
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
    """For some batches: their base offset, relative to the segment's, and their position."""

    __slots__ = ("offsets", "positions")

    def __init__(self) -> None:
        self.offsets = array("I")
        self.positions = array("I")

    def __len__(self) -> int:
        return len(self.offsets)

    def add(self, offset: int, position: int) -> None:
        self.offsets.append(offset)
        self.positions.append(position)

    def floor(self, offset: int) -> tuple[int, int]:
        """The last entry at or below `offset`: its offset and position. The segment's beginning needs no entry."""
        found = bisect_right(self.offsets, offset) - 1
        return (self.offsets[found], self.positions[found]) if found >= 0 else (0, 0)

    def cut(self, offset: int) -> None:
        """Forget the entries at `offset` and above."""
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
            raise Unreadable(f"an offset index of {len(data)} bytes")
        both = array("I", data)
        if _SWAP:
            both.byteswap()
        index = cls()
        index.offsets, index.positions = both[0::2], both[1::2]
        if not (_rises(index.offsets) and _rises(index.positions)):
            raise Unreadable("an offset index that does not rise")
        if index.positions and index.positions[-1] >= segment_size:
            raise Unreadable(f"an offset index that points behind the segment's {segment_size} bytes")
        return index


class TimeIndex:
    """For some batches that had a higher timestamp than all before: that timestamp and their relative base offset."""

    __slots__ = ("offsets", "timestamps")

    def __init__(self) -> None:
        self.timestamps = array("q")
        self.offsets = array("I")

    def __len__(self) -> int:
        return len(self.offsets)

    def add(self, timestamp: int, offset: int) -> None:
        self.timestamps.append(timestamp)
        self.offsets.append(offset)

    def before(self, timestamp: int) -> int:
        """An offset below which every record is older than `timestamp`."""
        found = bisect_left(self.timestamps, timestamp) - 1
        return self.offsets[found] if found >= 0 else 0

    def last_below(self, offset: int) -> tuple[int, int] | None:
        """The last entry whose batch begins below `offset`: timestamp and offset."""
        found = bisect_left(self.offsets, offset) - 1
        return (self.timestamps[found], self.offsets[found]) if found >= 0 else None

    def cut(self, offset: int) -> None:
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
            raise Unreadable(f"a time index of {len(data)} bytes")
        thirds = array("I", data)
        halves = array("I", bytes(8 * (len(thirds) // 3)))
        halves[0::2], halves[1::2] = thirds[0::3], thirds[1::3]
        index = cls()
        index.timestamps, index.offsets = array("q", halves.tobytes()), thirds[2::3]
        if _SWAP:
            index.timestamps.byteswap()
            index.offsets.byteswap()
        if not (_rises(index.timestamps) and _rises(index.offsets)):
            raise Unreadable("a time index that does not rise")
        return index


def _rises(column: "array[int]") -> bool:
    return all(map(lt, column, column[1:]))
