"""Transactions that were aborted: what a reader of committed records must leave out.

The index of a segment lists the transactions whose abort marker stands in it, in the order of the markers. A reader of
some offsets is told of those that began below the last of them and ended at the first or later, in whatever segment.
Each entry says up to where all transactions had ended by then: who has reached an entry that covers all that is read
need not look further.

On disk it is Kafka's idea in our form: 32 bytes an entry (producer, first offset, offset of the marker, stable offset,
each a big-endian i64), then a CRC-32C of them. Segments without aborted transactions have no file. The index of the
active segment is in memory; others are read when they are asked for, and forgotten at the next checkpoint.
"""

import sys
from array import array
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from typing import Final, NamedTuple, Self

from tailrace.log.directory.state_file import Unreadable
from tailrace.log.index.segment_indexes import CHECKSUM_BYTES, checked
from tailrace.records.crc import crc32c

COLUMNS: Final = 4
ENTRY_BYTES: Final = 8 * COLUMNS
_SWAP: Final = sys.byteorder == "little"

assert array("q").itemsize == 8


class Aborted(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int  # of its marker
    stable: int  # all that began below had ended with this marker


class AbortedIndex:
    """The aborted transactions of one segment."""

    __slots__ = ("_rows", "unsaved")

    def __init__(self) -> None:
        self._rows = array("q")
        self.unsaved = True  # whether the file lacks something, or has too much

    def __len__(self) -> int:
        return len(self._rows) // COLUMNS

    def add(self, one: Aborted) -> None:
        self._rows.extend(one)
        self.unsaved = True

    def since(self, offset: int) -> Iterator[Aborted]:
        """Those whose marker stands at `offset` or later, in the order of the markers."""
        for number in range(self._first(offset), len(self)):
            yield Aborted(*self._rows[COLUMNS * number : COLUMNS * (number + 1)])

    def cut(self, end: int) -> None:
        """The segment ends at `end` now."""
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
        entries = checked(data)
        if len(entries) % ENTRY_BYTES:
            raise Unreadable(f"an index of aborted transactions with {len(entries)} bytes")
        index = cls()
        index._rows, index.unsaved = _big_endian(array("q", entries)), False
        return index


def _big_endian(rows: "array[int]") -> "array[int]":
    swapped = rows[:]
    if _SWAP:
        swapped.byteswap()
    return swapped


class AbortedIndexes:
    """Those of a log's segments that have any, by the segments' base offsets. None: it is on the disk."""

    def __init__(self) -> None:
        self._bases: list[int] = []  # rising
        self._indexes: dict[int, AbortedIndex | None] = {}

    def know(self, base: int, index: AbortedIndex | None) -> None:
        if base not in self._indexes:
            insort(self._bases, base)
        self._indexes[base] = index

    def is_on_disk(self, base: int) -> bool:
        """Whether there is an index that has to be read first."""
        return base in self._indexes and self._indexes[base] is None

    def add(self, base: int, one: Aborted) -> None:
        """A marker in the last segment, which begins at `base`, aborts a transaction."""
        if base not in self._indexes:
            self.know(base, AbortedIndex())
        index = self._indexes[base]
        if index is not None:  # else its file cannot be read, and all of it is made again when it is asked for
            index.add(one)

    def find(self, offset: int, upto: int) -> list[Aborted] | int:
        """What a reader of the offsets from `offset` to `upto` must know; or the base of an index to be read first."""
        found: list[Aborted] = []
        for base in self._bases[max(bisect_right(self._bases, offset) - 1, 0) :]:
            index = self._indexes[base]
            if index is None:
                return base
            for one in index.since(offset):
                if one.first_offset < upto:
                    found.append(one)
                if one.stable >= upto:
                    return found
        return found

    def unsaved(self) -> dict[int, AbortedIndex]:
        return {base: index for base, index in self._indexes.items() if index is not None and index.unsaved}

    def forget_sealed(self, active: int) -> None:
        """Give back the memory of those that can be read again."""
        for base, index in self._indexes.items():
            if base != active and index is not None and not index.unsaved:
                self._indexes[base] = None

    def cut(self, end: int, last: int) -> None:
        """The log ends at `end` now, in the segment that begins at `last`."""
        self._keep([base for base in self._bases if base <= last])
        if (index := self._indexes.get(last)) is not None:
            index.cut(end)

    def forget_below(self, start: int) -> None:
        """The segments that begin below `start` are gone."""
        if self._bases and self._bases[0] < start:
            self._keep([base for base in self._bases if base >= start])

    def _keep(self, bases: list[int]) -> None:
        self._bases = bases
        self._indexes = {base: self._indexes[base] for base in bases}
