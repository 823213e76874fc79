"""The index of aborted transactions, whose records `read_committed` consumers skip.

The index of a segment lists the transactions whose abort marker is in that segment, in the order of the markers. A
Fetch of some offsets returns all aborted transactions that began below the last offset and have their marker at the
first offset or later, in whichever segment. Each entry has the last stable offset at its marker: a search stops at the
first entry whose last stable offset covers everything that was read.

The file format follows Kafka's idea: 32 bytes an entry (producer id, first offset, offset of the marker, last stable
offset, each a big-endian i64), then a CRC-32C of all entries. A segment without aborted transactions has no file. The
index of the active segment is in memory; others are loaded when needed and unloaded by the next checkpoint.
"""

import sys
from array import array
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, Self

from tailrace.log.directory.state_file import Unreadable
from tailrace.log.index.segment_indexes import CHECKSUM_BYTES, verified_entries
from tailrace.records.crc import crc32c

COLUMNS: Final = 4
ENTRY_BYTES: Final = 8 * COLUMNS
_SWAP: Final = sys.byteorder == "little"

assert array("q").itemsize == 8


class Aborted(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int  # of its marker
    last_stable_offset: int  # all transactions that began below it had ended with this marker


class AbortedIndex:
    """The aborted transactions of one segment."""

    __slots__ = ("_rows", "unsaved")

    def __init__(self) -> None:
        self._rows = array("q")
        self.unsaved = True  # whether the file is missing or out of date

    def __len__(self) -> int:
        return len(self._rows) // COLUMNS

    def add(self, aborted: Aborted) -> None:
        self._rows.extend(aborted)
        self.unsaved = True

    def marked_from(self, offset: int) -> Iterator[Aborted]:
        """The transactions whose marker is at `offset` or later, in the order of the markers."""
        for number in range(self._first(offset), len(self)):
            yield Aborted(*self._rows[COLUMNS * number : COLUMNS * (number + 1)])

    def truncate_to(self, end: int) -> None:
        """Remove the transactions whose marker is at `end` or later."""
        kept = COLUMNS * self._first(end)
        self.unsaved = self.unsaved or kept < len(self._rows)
        del self._rows[kept:]

    def _first(self, offset: int) -> int:
        return bisect_left(range(len(self)), offset, key=lambda number: self._rows[COLUMNS * number + 2])

    def dump(self) -> bytes:
        entries = _big_endian(self._rows).tobytes()
        return entries + crc32c(entries).to_bytes(CHECKSUM_BYTES)

    @classmethod
    def load(cls, data: bytes) -> Self:
        entries = verified_entries(data)
        if len(entries) % ENTRY_BYTES:
            raise Unreadable(f"aborted index: {len(entries)} bytes are not a whole number of entries")
        index = cls()
        index._rows, index.unsaved = _big_endian(array("q", entries)), False
        return index


def _big_endian(rows: "array[int]") -> "array[int]":
    swapped = rows[:]
    if _SWAP:
        swapped.byteswap()
    return swapped


class AbortedIndexes:
    """The indexes of the segments that have aborted transactions, by the segments' base offsets. None: not loaded."""

    def __init__(self) -> None:
        self._bases: list[int] = []  # ascending
        self._indexes: dict[int, AbortedIndex | None] = {}

    def put(self, base: int, index: AbortedIndex | None) -> None:
        if base not in self._indexes:
            insort(self._bases, base)
        self._indexes[base] = index

    def must_load(self, base: int) -> bool:
        """Whether the segment has an index that is not loaded."""
        return base in self._indexes and self._indexes[base] is None

    def add(self, base: int, aborted: Aborted) -> None:
        """Add a transaction whose abort marker is in the active segment, which begins at `base`."""
        if base not in self._indexes:
            self.put(base, AbortedIndex())
        index = self._indexes[base]
        if index is not None:  # otherwise its file is unreadable, and the index is rebuilt from the batches when needed
            index.add(aborted)

    def find(self, offset: int, upto: int) -> list[Aborted] | int:
        """The aborted transactions that overlap `offset` to `upto`; or the base of an index to be loaded first."""
        found: list[Aborted] = []
        for base in self._bases[max(bisect_right(self._bases, offset) - 1, 0) :]:
            index = self._indexes[base]
            if index is None:
                return base
            for aborted in index.marked_from(offset):
                if aborted.first_offset < upto:
                    found.append(aborted)
                if aborted.last_stable_offset >= upto:
                    return found
        return found

    def unsaved(self) -> dict[int, AbortedIndex]:
        return {base: index for base, index in self._indexes.items() if index is not None and index.unsaved}

    def unload_sealed(self, active: int) -> None:
        """Free the memory of saved indexes, except that of the segment that begins at `active`."""
        for base, index in self._indexes.items():
            if base != active and index is not None and not index.unsaved:
                self._indexes[base] = None

    def truncate_to(self, end: int, last: int) -> None:
        """The log was truncated to `end`, in the segment that begins at `last`."""
        self._keep([base for base in self._bases if base <= last])
        if (index := self._indexes.get(last)) is not None:
            index.truncate_to(end)

    def remove_below(self, start: int) -> None:
        """The segments that begin below `start` were removed."""
        if self._bases and self._bases[0] < start:
            self._keep([base for base in self._bases if base >= start])

    def replace(self, bases: Sequence[int], index: AbortedIndex | None) -> None:
        """One segment, at the first of `bases`, has replaced those that began there; None: it has no index."""
        gone = dict.fromkeys(bases)
        self._keep([base for base in self._bases if base not in gone])
        if index is not None:
            self.put(bases[0], index)

    def _keep(self, bases: list[int]) -> None:
        self._bases = bases
        self._indexes = {base: self._indexes[base] for base in bases}
