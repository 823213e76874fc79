"""Both indexes of one segment, as they grow with it.

`note` is told of every batch that is in the segment, in order, at append and at recovery alike: it is on the hot path.
After `rewind` the batches that were not forgotten must be told again from the place it names, so that the highest
timestamp and the bytes since the last entry come out as if nothing had happened.

A file ends with a CRC-32C of all its entries, so that a flipped bit, or entries that are missing at the end, cannot
pass for an index: it would make good batches look damaged, or old ones that are not. It is carried on from save to
save, for a file only grows.
"""

from typing import Final, Self

from tailrace.log.directory.state_file import Unreadable
from tailrace.log.index.sparse import OFFSET_ENTRY_BYTES, TIME_ENTRY_BYTES, OffsetIndex, TimeIndex
from tailrace.records.crc import crc32c

NO_TIMESTAMP: Final = -1
CHECKSUM_BYTES: Final = 4


class Indexes:
    __slots__ = (
        "_offsets_checksum",
        "_offsets_saved",
        "_since_entry",
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
        self.max_timestamp_offset = base  # of the first batch that had it
        self._since_entry = 0  # bytes since the batch of the last entry began
        self._offsets_saved = 0  # entries that the files hold and that are right
        self._times_saved = 0
        self._stale = True  # whether the files are missing, or hold entries that are none any more
        self._offsets_checksum = 0  # of the saved entries
        self._times_checksum = 0

    def note(self, offset: int, position: int, size: int, max_timestamp: int) -> None:
        """A batch of `size` bytes stands at `position`."""
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.max_timestamp_offset = offset
        if self._since_entry > self.interval_bytes:
            self.offsets.add(offset - self.base, position)
            self.note_time()
            self._since_entry = 0
        self._since_entry += size

    def note_time(self) -> None:
        """Make an entry for the highest timestamp, if there is none yet."""
        timestamps = self.times.timestamps
        if self.max_timestamp > (timestamps[-1] if timestamps else NO_TIMESTAMP):
            self.times.add(self.max_timestamp, self.max_timestamp_offset - self.base)

    def place(self, offset: int) -> tuple[int, int]:
        """The last entry at or before `offset`: a batch's base offset and position."""
        relative, position = self.offsets.floor(offset - self.base)
        return relative + self.base, position

    def rewind(self, offset: int) -> tuple[int, int]:
        """Forget what was noted of `offset` and above; the place from which on `note` must be told again."""
        self.offsets.cut(offset - self.base)
        self.times.cut(offset - self.base)
        self._stale = self._stale or self._offsets_saved > len(self.offsets) or self._times_saved > len(self.times)
        if self._offsets_saved > len(self.offsets):
            self._offsets_saved, self._offsets_checksum = len(self.offsets), crc32c(self.offsets.dump())
        if self._times_saved > len(self.times):
            self._times_saved, self._times_checksum = len(self.times), crc32c(self.times.dump())
        self._since_entry = 0
        self._know_last_time()
        return self.place(offset)

    @property
    def unsaved(self) -> bool:
        """Whether the index files lack something."""
        timestamps = self.times.timestamps
        return (
            self._stale
            or len(self.offsets) != self._offsets_saved
            or len(self.times) != self._times_saved
            or self.max_timestamp > (timestamps[-1] if timestamps else NO_TIMESTAMP)
        )

    def take_unsaved(self) -> tuple[tuple[bytes, int], tuple[bytes, int]]:
        """What the offset and the time index file lack, and where it belongs; from now on it counts as saved.

        No bytes where a file lacks nothing.
        """
        self.note_time()
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

    def distrust_files(self) -> None:
        """Nothing counts as saved any more."""
        self._offsets_saved = self._times_saved = 0
        self._offsets_checksum = self._times_checksum = 0
        self._stale = True

    @classmethod
    def load(cls, base: int, interval_bytes: int, offsets: bytes, times: bytes, segment_size: int) -> Self:
        """Indexes from their files; `Unreadable` when they cannot be those of a segment of this size."""
        indexes = cls(base, interval_bytes)
        indexes.offsets = OffsetIndex.load(checked(offsets), segment_size)
        indexes.times = TimeIndex.load(checked(times))
        if segment_size and not indexes.times:
            raise Unreadable("a time index without an entry")
        indexes._offsets_saved, indexes._times_saved = len(indexes.offsets), len(indexes.times)
        indexes._offsets_checksum, indexes._times_checksum = _checksum(offsets), _checksum(times)
        indexes._stale = False
        indexes._know_last_time()
        return indexes

    def _know_last_time(self) -> None:
        times = self.times
        self.max_timestamp = times.timestamps[-1] if times.timestamps else NO_TIMESTAMP
        self.max_timestamp_offset = self.base + (times.offsets[-1] if times.offsets else 0)


def last_time(times: bytes) -> int | None:
    """The highest timestamp of a segment, from the file of its time index; None when the file is not to be trusted."""
    try:
        last = TimeIndex.load(checked(times)[-TIME_ENTRY_BYTES:]).timestamps
    except Unreadable:
        return None
    return last[0] if last else None


def _checksum(data: bytes) -> int:
    return int.from_bytes(data[-CHECKSUM_BYTES:])


def checked(data: bytes) -> bytes:
    """The entries of an index file."""
    entries = data[:-CHECKSUM_BYTES]
    if len(data) < CHECKSUM_BYTES or crc32c(entries) != _checksum(data):
        raise Unreadable("an index whose checksum does not fit")
    return entries
