"""A segment: one file of batches, and where to find its indexes.

The active segment and those sealed since the last checkpoint have their indexes in memory. Others load theirs at first
use, so that a broker with many thousands of segments starts quickly; where they are missing or senseless, they are
made again from the batches.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final

from tailrace.log.directory.state_file import Unreadable
from tailrace.log.file_names import ABORTED_SUFFIX, INDEX_SUFFIX, SEGMENT_SUFFIX, TIMES_SUFFIX, named
from tailrace.log.index.segment_indexes import NO_TIMESTAMP, Indexes, last_time
from tailrace.log.recovery.segment_walk import Found, walk_cold
from tailrace.model.faults import StorageFailed
from tailrace.model.limits import BATCH_HEADER_BYTES
from tailrace.ports.disk import Disk, File, read_file
from tailrace.records.header import read_header

NOT_YET: Final = 2**63 - 1


class Segment:
    def __init__(self, disk: Disk, folder: str, base: int, interval_bytes: int) -> None:
        self._disk = disk
        self._folder = folder
        self.base = base
        self.interval_bytes = interval_bytes
        self.file: File = disk.open(self.path_of(SEGMENT_SUFFIX))
        self.size = self.file.size()  # bytes of whole batches; a failed write may leave more in the file for a moment
        self.indexes: Indexes | None = None
        self.first_timestamp = NOT_YET  # of the first batch: what `segment.ms` counts from; known of the active one
        self.hint = (base, 0)  # base offset and position of a batch: where the last read ended
        self.removed = False
        self._cuts = 0  # times it was made shorter
        self.has_gaps = False  # whether its batches may skip offsets (`gaps`)
        self._max_timestamp: int | None = None  # of a sealed segment, whose indexes need not be loaded for it

    def path_of(self, suffix: str) -> str:
        return f"{self._folder}/{named(self.base, suffix)}"

    def set_interval(self, interval_bytes: int) -> None:
        self.interval_bytes = interval_bytes
        if self.indexes is not None:
            self.indexes.interval_bytes = interval_bytes

    def begin_indexes(self) -> Indexes:
        """Indexes of nothing: for a new segment, or one that will be noted from its first byte on."""
        self.indexes = Indexes(self.base, self.interval_bytes)
        return self.indexes

    def place(self, offset: int) -> tuple[int, int]:
        """A batch at or before the one that holds `offset`: its base offset and position."""
        assert self.indexes is not None
        place, hint = self.indexes.place(offset), self.hint
        return hint if hint[1] > place[1] and hint[0] <= offset else place

    def cut(self, size: int) -> None:
        """The segment ends at `size` now; its indexes have been rewound to there."""
        self.size = size
        self.hint = (self.base, 0)
        self._cuts += 1

    def load_now(self) -> Indexes | None:
        """The indexes from their files, waiting for the disk: for start-up. None when they are missing or senseless."""
        paths = [self.path_of(INDEX_SUFFIX), self.path_of(TIMES_SUFFIX)]
        if all(map(self._disk.exists, paths)):
            with suppress(OSError):
                self._accept(*(read_file(self._disk, path) for path in paths))
        return self.indexes

    def _accept(self, offsets: bytes, times: bytes) -> None:
        try:
            self.indexes = Indexes.load(self.base, self.interval_bytes, offsets, times, self.size)
        except Unreadable:
            self.indexes = None

    async def load(self) -> Indexes | None:
        """The indexes, loaded off the loop or made again; None when the segment was removed meanwhile."""
        if self.indexes is None and not self.removed:
            offsets = await self.read_beside(INDEX_SUFFIX)
            times = b"" if self.removed else await self.read_beside(TIMES_SUFFIX)
            if self.indexes is None and not self.removed:
                self._accept(offsets, times)
                if self.indexes is None:
                    await self.make_indexes_again()
        return None if self.removed else self.indexes

    async def make_indexes_again(self) -> tuple[int, int, str] | None:
        """Indexes from the batches, beside appends; position, offset and problem of one that cannot be read."""
        cuts, position, expected, bad = self._cuts, 0, self.base, None
        indexes = Indexes(self.base, self.interval_bytes)
        while position < self.size and bad is None and not self.removed:
            async for found in self.walk(position):
                header = found.header
                if found.problem is not None or header is None:
                    bad = found.position, expected, found.problem or "unreadable"
                    break
                indexes.note(header.base_offset, found.position, header.size, header.max_timestamp)
                position, expected = found.position + header.size, header.last_offset + 1
        if cuts != self._cuts:  # what was cut off meanwhile may be among them
            return await self.make_indexes_again()
        indexes.interval_bytes = self.interval_bytes
        indexes.note_time()
        self.indexes, self.hint = indexes, (self.base, 0)
        return bad

    async def walk(self, position: int) -> AsyncIterator[Found]:
        """Its batches, read off the loop; it ends early when the segment is removed meanwhile."""
        try:
            async for found in walk_cold(self.file, position, self.size, check=False):
                yield found
                if self.removed:
                    return
        except (OSError, ValueError) as error:  # a closed file is a ValueError
            if not self.removed:
                raise StorageFailed(f"{self.path_of(SEGMENT_SUFFIX)} could not be read: {error}") from error

    async def max_timestamp(self) -> int:
        """The highest timestamp; of a sealed segment the last entry of its time index will do."""
        if self.indexes is not None:
            return self.indexes.max_timestamp
        if self._max_timestamp is None:
            last = await self._last_time()
            if last is None:
                indexes = await self.load()
                last = NO_TIMESTAMP if indexes is None else indexes.max_timestamp
            self._max_timestamp = last
        return self._max_timestamp

    async def _last_time(self) -> int | None:
        return None if self.removed else last_time(await self.read_beside(TIMES_SUFFIX))

    async def know_first_timestamp(self) -> None:
        """For a segment that becomes the active one again."""
        if self.first_timestamp == NOT_YET and self.size:
            self.first_timestamp = read_header(await self.file.read_cold(0, BATCH_HEADER_BYTES)).base_timestamp

    async def read_beside(self, suffix: str) -> bytes:
        """An index file; nothing where it cannot be read: the batches know what it said."""
        path = self.path_of(suffix)
        if not self._disk.exists(path):
            return b""
        try:
            file = self._disk.open(path)
        except OSError:  # it can be that there are no descriptors left
            return b""
        try:
            return await file.read_cold(0, file.size())
        except OSError:
            return b""
        finally:
            file.close()

    async def save_indexes(self) -> None:
        """Bring the index files up to date and force them to the disk. Their names are the caller's to sync."""
        assert self.indexes is not None
        files = []
        try:
            for suffix, (data, position) in zip((INDEX_SUFFIX, TIMES_SUFFIX), self.indexes.take_unsaved(), strict=True):
                if not data:
                    continue
                files.append(self._disk.open(self.path_of(suffix)))
                files[-1].write(data, position)
                files[-1].truncate(position + len(data))
            await asyncio.gather(*(file.sync() for file in files))
        except BaseException:  # a cancelled checkpoint, too, has written and not synced
            self.indexes.distrust_files()
            raise
        finally:
            for file in files:
                file.close()

    def forget_indexes(self) -> None:
        """Give back the memory of a sealed segment whose index files are right; it loads them again when asked."""
        assert self.indexes is not None
        self._max_timestamp = self.indexes.max_timestamp
        self.indexes = None

    def remove_files(self) -> None:
        """All but the index of aborted transactions, which cannot be missed: nobody would make it again, should a crash
        bring the segment back. It goes when the segment surely has (`remove_aborted`)."""
        self.removed = True
        self.file.close()
        for suffix in (INDEX_SUFFIX, TIMES_SUFFIX, SEGMENT_SUFFIX):
            self._remove(suffix)

    def remove_aborted(self) -> None:
        self._remove(ABORTED_SUFFIX)

    def _remove(self, suffix: str) -> None:
        if self._disk.exists(self.path_of(suffix)):
            self._disk.remove(self.path_of(suffix))
