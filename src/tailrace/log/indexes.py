"""Both indexes of one segment, as they grow with it.

`note` is told of every batch that is in the segment, in order, at append and at recovery alike: it is on the hot path.
After `rewind` the batches that were not forgotten must be told again from the place it names, so that the highest
timestamp and the bytes since the last entry come out as if nothing had happened.
"""

from typing import Final, Self

from tailrace.log.index import OffsetIndex, TimeIndex, offset_entry_bytes, time_entry_bytes
from tailrace.log.state_file import Unreadable

no_timestamp: Final = -1


class Indexes:
    __slots__ = (
        "_offsets_saved",
        "_since_entry",
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
        self.max_timestamp = no_timestamp
        self.max_timestamp_offset = base  # of the first batch that had it
        self._since_entry = 0  # bytes since the batch of the last entry began
        self._offsets_saved = 0  # entries that the files hold and that are right
        self._times_saved = 0

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
        if self.max_timestamp > (timestamps[-1] if timestamps else no_timestamp):
            self.times.add(self.max_timestamp, self.max_timestamp_offset - self.base)

    def place(self, offset: int) -> tuple[int, int]:
        """The last entry at or before `offset`: a batch's base offset and position."""
        relative, position = self.offsets.floor(offset - self.base)
        return relative + self.base, position

    def rewind(self, offset: int) -> tuple[int, int]:
        """Forget what was noted of `offset` and above; the place from which on `note` must be told again."""
        self.offsets.cut(offset - self.base)
        self.times.cut(offset - self.base)
        self._offsets_saved = min(self._offsets_saved, len(self.offsets))
        self._times_saved = min(self._times_saved, len(self.times))
        self._since_entry = 0
        self._know_last_time()
        return self.place(offset)

    @property
    def unsaved(self) -> bool:
        """Whether the index files lack something."""
        timestamps = self.times.timestamps
        return (
            len(self.offsets) != self._offsets_saved
            or len(self.times) != self._times_saved
            or self.max_timestamp > (timestamps[-1] if timestamps else no_timestamp)
        )

    def take_unsaved(self) -> tuple[tuple[bytes, int], tuple[bytes, int]]:
        """What the offset and the time index file lack, and where it belongs; from now on it counts as saved."""
        self.note_time()
        offsets = self.offsets.dump(self._offsets_saved), self._offsets_saved * offset_entry_bytes
        times = self.times.dump(self._times_saved), self._times_saved * time_entry_bytes
        self._offsets_saved, self._times_saved = len(self.offsets), len(self.times)
        return offsets, times

    def distrust_files(self) -> None:
        """Nothing counts as saved any more."""
        self._offsets_saved = self._times_saved = 0

    @classmethod
    def load(cls, base: int, interval_bytes: int, offsets: bytes, times: bytes, segment_size: int) -> Self:
        """Indexes from their files; `Unreadable` when they cannot be those of a segment of this size."""
        indexes = cls(base, interval_bytes)
        indexes.offsets = OffsetIndex.load(offsets, segment_size)
        indexes.times = TimeIndex.load(times)
        if segment_size and not times:
            raise Unreadable("a time index without an entry")
        indexes._offsets_saved, indexes._times_saved = len(indexes.offsets), len(indexes.times)
        indexes._know_last_time()
        return indexes

    def _know_last_time(self) -> None:
        times = self.times
        self.max_timestamp = times.timestamps[-1] if times.timestamps else no_timestamp
        self.max_timestamp_offset = self.base + (times.offsets[-1] if times.offsets else 0)
