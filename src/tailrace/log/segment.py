"""A segment: one file of batches and what is known about it without reading it.

The active segment and those sealed since the last checkpoint have their indexes in memory. Others load theirs at first
use, so that a broker with many thousands of segments starts quickly. `note` is told of every batch that is in the file,
at append and at recovery alike; it is on the hot path.
"""

import asyncio
from typing import Final

from tailrace.log.index import OffsetIndex, TimeIndex, offset_entry_bytes, time_entry_bytes
from tailrace.log.names import index_suffix, named, segment_suffix, times_suffix
from tailrace.log.state_file import Unreadable
from tailrace.log.walk import walk_cold
from tailrace.ports.disk import Disk, File, read_file

no_timestamp: Final = -1
not_yet: Final = 2**63 - 1


class Segment:
    def __init__(self, disk: Disk, folder: str, base: int, interval_bytes: int) -> None:
        self._disk = disk
        self._folder = folder
        self.base = base
        self.file: File = disk.open(self.path_of(segment_suffix))
        self.size = self.file.size()  # bytes of whole batches; a failed write may leave more in the file for a moment
        self.interval_bytes = interval_bytes
        self.index: OffsetIndex | None = None
        self.times: TimeIndex | None = None
        self.first_timestamp = not_yet  # of the first batch: what `segment.ms` counts from
        self.max_timestamp = no_timestamp  # once `times_known`
        self.times_known = False
        self.max_timestamp_offset = base  # base offset of the batch with it
        self.hint = (base, 0)  # a batch's base offset and its position: where the last read ended
        self.removed = False
        self._since_entry = 0  # bytes
        self._index_saved = 0  # entries that the files hold and that are right
        self._times_saved = 0

    def path_of(self, suffix: str) -> str:
        return f"{self._folder}/{named(self.base, suffix)}"

    @property
    def loaded(self) -> bool:
        return self.index is not None

    def begin_indexes(self) -> None:
        """Indexes of nothing: for a new segment, or one that will be noted from its first byte on."""
        self.index, self.times = OffsetIndex(), TimeIndex()
        self.max_timestamp, self.max_timestamp_offset = no_timestamp, self.base
        self._since_entry = self._index_saved = self._times_saved = 0
        self.times_known = True

    def note(self, offset: int, position: int, size: int, max_timestamp: int) -> None:
        """A batch of `size` bytes stands at `position`."""
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.max_timestamp_offset = offset
        if self._since_entry > self.interval_bytes:
            assert self.index is not None
            self.index.add(offset - self.base, position)
            self._note_time()
            self._since_entry = 0
        self._since_entry += size

    def _note_time(self) -> None:
        times = self.times
        assert times is not None
        relative = self.max_timestamp_offset - self.base
        if self.max_timestamp >= 0 and (not times.timestamps or self.max_timestamp > times.timestamps[-1]):
            times.add(self.max_timestamp, relative)

    def place(self, offset: int) -> tuple[int, int]:
        """A batch at or before the one that holds `offset`: its base offset and position."""
        assert self.index is not None
        hint = self.hint
        relative, position = self.index.floor(offset - self.base)
        if hint[1] > position and hint[0] <= offset:
            return hint
        return relative + self.base, position

    def rewind(self, offset: int) -> tuple[int, int]:
        """Forget the index entries at `offset` and above; from which batch on `note` must be told again."""
        assert self.index is not None
        assert self.times is not None
        self.index.cut(offset - self.base)
        self.times.cut(offset - self.base)
        self._index_saved = min(self._index_saved, len(self.index))
        self._times_saved = min(self._times_saved, len(self.times))
        self._know_last_time()
        self._since_entry = 0
        self.hint = (self.base, 0)
        return self.place(offset)

    def _know_last_time(self) -> None:
        times = self.times
        assert times is not None
        self.times_known = True
        self.max_timestamp = times.timestamps[-1] if times.timestamps else no_timestamp
        self.max_timestamp_offset = self.base + (times.offsets[-1] if times.offsets else 0)

    def accept_indexes(self, index: bytes, times: bytes) -> bool:
        """Take the indexes from their files' bytes; False when they cannot be this segment's."""
        try:
            offsets, timestamps = OffsetIndex.load(index, self.size), TimeIndex.load(times)
        except Unreadable:
            return False
        if self.size > 0 and not timestamps.timestamps and offsets.offsets:
            return False  # some batch always has a timestamp, unless the producer gave none at all
        self.index, self.times = offsets, timestamps
        self._index_saved, self._times_saved = len(offsets), len(timestamps)
        self._know_last_time()
        self._since_entry = self.size - (offsets.positions[-1] if offsets.positions else 0)
        return True

    def load_now(self) -> bool:
        """Load the indexes, waiting for the disk: for start-up. False when they are missing or senseless."""
        if not (self._disk.exists(self.path_of(index_suffix)) and self._disk.exists(self.path_of(times_suffix))):
            return False
        index = read_file(self._disk, self.path_of(index_suffix))
        return self.accept_indexes(index, read_file(self._disk, self.path_of(times_suffix)))

    async def load(self) -> None:
        """Load the indexes of a sealed segment off the loop, or make them again from its batches."""
        data = [await self._read_cold(self.path_of(suffix)) for suffix in (index_suffix, times_suffix)]
        if self.loaded or self.removed or self.accept_indexes(data[0], data[1]):
            return
        await self._make_again()

    async def _make_again(self) -> None:
        fresh = Segment(self._disk, self._folder, self.base, self.interval_bytes)
        fresh.begin_indexes()
        async for found in walk_cold(self.file, 0, self.size, check=False):
            if found.problem is not None or found.header is None:
                break  # reads will find and name it
            header = found.header
            fresh.note(header.base_offset, found.position, header.size, header.max_timestamp)
        fresh._note_time()
        fresh.file.close()
        self.index, self.times = fresh.index, fresh.times
        self._know_last_time()

    async def know_times(self) -> None:
        """Find out the highest timestamp, from the last entry of the time index alone if that will do."""
        if self.times_known:
            return
        file = self._disk.open(self.path_of(times_suffix))
        size = file.size()
        if size == 0 or size % time_entry_bytes:
            await self.load()
            return
        last = TimeIndex.load(await file.read_cold(size - time_entry_bytes, time_entry_bytes))
        file.close()
        self.max_timestamp, self.max_timestamp_offset = last.timestamps[0], self.base + last.offsets[0]
        self.times_known = True

    async def _read_cold(self, path: str) -> bytes:
        file = self._disk.open(path)
        try:
            return await file.read_cold(0, file.size())
        finally:
            file.close()

    @property
    def unsaved(self) -> bool:
        """Whether the index files lack something."""
        return self.loaded and (
            len(self.index or ()) != self._index_saved
            or len(self.times or ()) != self._times_saved
            or (self.times is not None and self.max_timestamp > (self.times.timestamps or (no_timestamp,))[-1])
        )

    async def save_indexes(self) -> None:
        """Bring the index files up to date and force them to the disk. Their names are the caller's to sync."""
        assert self.index is not None
        assert self.times is not None
        self._note_time()
        offsets, timestamps = len(self.index), len(self.times)
        parts = (
            (index_suffix, self.index.dump(self._index_saved), self._index_saved * offset_entry_bytes),
            (times_suffix, self.times.dump(self._times_saved), self._times_saved * time_entry_bytes),
        )
        files = [_write_tail(self._disk.open(self.path_of(suffix)), data, at) for suffix, data, at in parts]
        self._index_saved, self._times_saved = offsets, timestamps
        await asyncio.gather(*(file.sync() for file in files))
        for file in files:
            file.close()

    def forget_indexes(self) -> None:
        """Give back the memory of a sealed segment whose index files are right; it loads them again when asked."""
        self.index = self.times = None

    def remove_files(self) -> None:
        self.removed = True
        self.file.close()
        for suffix in (index_suffix, times_suffix, segment_suffix):
            if self._disk.exists(self.path_of(suffix)):
                self._disk.remove(self.path_of(suffix))


def _write_tail(file: File, data: bytes, position: int) -> File:
    file.write(data, position)
    file.truncate(position + len(data))
    return file
