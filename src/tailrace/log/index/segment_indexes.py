"""The offset index and the time index of one segment, as they grow with it, and their files.

`add_batch` is called for every batch of the segment, in order, by appends and by recovery; it is on the hot path. An
entry is made once `index.interval.bytes` have passed since the last one. After `truncate_to` the caller adds again the
remaining batches from the position that it returns, so that the highest timestamp and the bytes since the last entry
are the same as if the truncated batches had never been added.

An index file ends with a CRC-32C of all its entries. So a flipped bit, or entries missing at the end, are recognised;
believed, they would make good batches look damaged, or retention take a new segment for an old one. The checksum is
carried on from save to save, because a file only grows between truncations.
"""

from typing import Final, Self

from tailrace.log.directory.state_file import Unreadable
from tailrace.log.index.sparse import OFFSET_ENTRY_BYTES, TIME_ENTRY_BYTES, OffsetIndex, TimeIndex
from tailrace.records.crc import crc32c

NO_TIMESTAMP: Final = -1
CHECKSUM_BYTES: Final = 4


class Indexes:
    __slots__ = (
        "_bytes_since_entry",
        "_offsets_checksum",
        "_offsets_saved",
        "_stale",
        "_times_checksum",
        "_times_saved",
        "base",
        "interval_bytes",
        "max_timestamp",
        "max_timestamp_offset",
        "offsets",
        "times",
    )

    def __init__(self, base: int, interval_bytes: int) -> None:
        self.base = base
        self.interval_bytes = interval_bytes
        self.offsets = OffsetIndex()
        self.times = TimeIndex()
        self.max_timestamp = NO_TIMESTAMP
        self.max_timestamp_offset = base  # of the first batch that has it
        self._bytes_since_entry = 0  # from the beginning of the last entry's batch
        self._offsets_saved = 0  # entries that are in the file already
        self._times_saved = 0
        self._stale = True  # whether the files are missing, or hold entries that were truncated
        self._offsets_checksum = 0  # of the saved entries
        self._times_checksum = 0

    def add_batch(self, offset: int, position: int, size: int, max_timestamp: int) -> None:
        """The segment has a batch of `size` bytes at `position`."""
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.max_timestamp_offset = offset
        if self._bytes_since_entry > self.interval_bytes:
            self.offsets.add(offset - self.base, position)
            self.add_time_entry()
            self._bytes_since_entry = 0
        self._bytes_since_entry += size

    @property
    def size_bytes(self) -> int:
        """The size of the larger index."""
        return max(OFFSET_ENTRY_BYTES * len(self.offsets), TIME_ENTRY_BYTES * len(self.times))

    def add_time_entry(self) -> None:
        """Add an entry for the highest timestamp, unless it has one."""
        timestamps = self.times.timestamps
        if self.max_timestamp > (timestamps[-1] if timestamps else NO_TIMESTAMP):
            self.times.add(self.max_timestamp, self.max_timestamp_offset - self.base)

    def lookup(self, offset: int) -> tuple[int, int]:
        """Base offset and position of the last batch with an entry at or before `offset`."""
        relative, position = self.offsets.lookup(offset - self.base)
        return relative + self.base, position

    def truncate_to(self, offset: int) -> tuple[int, int]:
        """Remove the entries at `offset` and above.

        Returns the base offset and position from which on the remaining batches must be added again.
        """
        self.offsets.truncate_to(offset - self.base)
        self.times.truncate_to(offset - self.base)
        self._stale = self._stale or self._offsets_saved > len(self.offsets) or self._times_saved > len(self.times)
        if self._offsets_saved > len(self.offsets):
            self._offsets_saved, self._offsets_checksum = len(self.offsets), crc32c(self.offsets.dump())
        if self._times_saved > len(self.times):
            self._times_saved, self._times_checksum = len(self.times), crc32c(self.times.dump())
        self._bytes_since_entry = 0
        self._restore_max_timestamp()
        return self.lookup(offset)

    @property
    def unsaved(self) -> bool:
        """Whether the index files are out of date."""
        timestamps = self.times.timestamps
        return (
            self._stale
            or len(self.offsets) != self._offsets_saved
            or len(self.times) != self._times_saved
            or self.max_timestamp > (timestamps[-1] if timestamps else NO_TIMESTAMP)
        )

    def take_unsaved(self) -> tuple[tuple[bytes, int], tuple[bytes, int]]:
        """The bytes to write to the offset and the time index file, each with its position; they count as saved now.

        Empty bytes where a file is up to date.
        """
        self.add_time_entry()
        whole, self._stale = self._stale, False
        offsets, offsets_at = self.offsets.dump(self._offsets_saved), self._offsets_saved * OFFSET_ENTRY_BYTES
        times, times_at = self.times.dump(self._times_saved), self._times_saved * TIME_ENTRY_BYTES
        self._offsets_checksum = crc32c(offsets, self._offsets_checksum)
        self._times_checksum = crc32c(times, self._times_checksum)
        self._offsets_saved, self._times_saved = len(self.offsets), len(self.times)
        if offsets or whole:
            offsets += self._offsets_checksum.to_bytes(CHECKSUM_BYTES)
        if times or whole:
            times += self._times_checksum.to_bytes(CHECKSUM_BYTES)
        return (offsets, offsets_at), (times, times_at)

    def mark_files_stale(self) -> None:
        """Count no entry as saved: the next save writes the files from their beginning."""
        self._offsets_saved = self._times_saved = 0
        self._offsets_checksum = self._times_checksum = 0
        self._stale = True

    @classmethod
    def load(cls, base: int, interval_bytes: int, offsets: bytes, times: bytes, segment_size: int) -> Self:
        """Indexes from their files; raises `Unreadable` when they cannot belong to a segment of this size."""
        indexes = cls(base, interval_bytes)
        indexes.offsets = OffsetIndex.load(verified_entries(offsets), segment_size)
        indexes.times = TimeIndex.load(verified_entries(times))
        if segment_size and not indexes.times:
            raise Unreadable("time index: no entry for a segment that has batches")
        indexes._offsets_saved, indexes._times_saved = len(indexes.offsets), len(indexes.times)
        indexes._offsets_checksum, indexes._times_checksum = _checksum(offsets), _checksum(times)
        indexes._stale = False
        indexes._restore_max_timestamp()
        return indexes

    def _restore_max_timestamp(self) -> None:
        times = self.times
        self.max_timestamp = times.timestamps[-1] if times.timestamps else NO_TIMESTAMP
        self.max_timestamp_offset = self.base + (times.offsets[-1] if times.offsets else 0)


def read_max_timestamp(times: bytes) -> int | None:
    """The highest timestamp of a segment, from its time index file; None when the file is empty or unreadable."""
    try:
        last = TimeIndex.load(verified_entries(times)[-TIME_ENTRY_BYTES:]).timestamps
    except Unreadable:
        return None
    return last[0] if last else None


def _checksum(data: bytes) -> int:
    return int.from_bytes(data[-CHECKSUM_BYTES:])


def verified_entries(data: bytes) -> bytes:
    """The bytes of an index file without its checksum; raises `Unreadable` when that does not match."""
    entries = data[:-CHECKSUM_BYTES]
    if len(data) < CHECKSUM_BYTES or crc32c(entries) != _checksum(data):
        raise Unreadable("index: the checksum does not match")
    return entries
