"""A segment: one file of record batches, and its indexes.

The active segment, and those sealed since the last checkpoint, have their indexes in memory. The others load their
indexes from files at first use, so that a broker with many thousands of segments starts quickly. Index files that are
missing or unreadable are rebuilt from the batches.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final

from tailrace.log.directory.state_file import Unreadable
from tailrace.log.file_names import ABORTED_SUFFIX, INDEX_SUFFIX, SEGMENT_SUFFIX, TIMES_SUFFIX, file_name
from tailrace.log.index.segment_indexes import NO_TIMESTAMP, Indexes, read_max_timestamp
from tailrace.log.segment_walk import WalkedBatch, walk_cold
from tailrace.model.faults import StorageFailed
from tailrace.model.limits import BATCH_HEADER_BYTES
from tailrace.ports.disk import Disk, File, read_file
from tailrace.records.header import read_header

NO_FIRST_TIMESTAMP: Final = 2**63 - 1


class Segment:
    def __init__(self, disk: Disk, folder: str, base: int, interval_bytes: int) -> None:
        self._disk = disk
        self._folder = folder
        self.base = base
        self.interval_bytes = interval_bytes
        self.file: File = disk.open(self.path_of(SEGMENT_SUFFIX))
        self.size = self.file.size()  # bytes of whole batches; the file is longer while a failed write is undone
        self.indexes: Indexes | None = None  # None: not loaded
        self.first_timestamp = NO_FIRST_TIMESTAMP  # of the active segment's first batch: `segment.ms` counts from it
        self.hint = (base, 0)  # base offset and position of the batch where the last read ended
        self.removed = False
        self.truncations = 0
        self.has_gaps = False  # whether its batches may skip offsets (`gaps`)
        self._max_timestamp: int | None = None  # of a sealed segment: known without loading its indexes

    def path_of(self, suffix: str) -> str:
        return f"{self._folder}/{file_name(self.base, suffix)}"

    def set_interval(self, interval_bytes: int) -> None:
        self.interval_bytes = interval_bytes
        if self.indexes is not None:
            self.indexes.interval_bytes = interval_bytes

    def begin_indexes(self) -> Indexes:
        """Empty indexes: for a new segment, or one whose batches are all added again."""
        self.indexes = Indexes(self.base, self.interval_bytes)
        return self.indexes

    def lookup(self, offset: int) -> tuple[int, int]:
        """Base offset and position of a batch at or before the one that holds `offset`."""
        assert self.indexes is not None
        found, hint = self.indexes.lookup(offset), self.hint
        return hint if hint[1] > found[1] and hint[0] <= offset else found

    def truncated(self, size: int) -> None:
        """The file was truncated to `size`; the indexes have been truncated by the caller."""
        self.size = size
        self.hint = (self.base, 0)
        self.truncations += 1

    def load_blocking(self) -> Indexes | None:
        """Load the indexes from their files, blocking on the disk: for start-up. None when missing or unreadable."""
        paths = [self.path_of(INDEX_SUFFIX), self.path_of(TIMES_SUFFIX)]
        if all(map(self._disk.exists, paths)):
            with suppress(OSError):
                self._parse_indexes(*(read_file(self._disk, path) for path in paths))
        return self.indexes

    def _parse_indexes(self, offsets: bytes, times: bytes) -> None:
        try:
            self.indexes = Indexes.load(self.base, self.interval_bytes, offsets, times, self.size)
        except Unreadable:
            self.indexes = None

    async def load(self) -> Indexes | None:
        """The indexes, loaded off the event loop or rebuilt; None when the segment was removed meanwhile."""
        if self.indexes is None and not self.removed:
            offsets = await self.read_index_file(INDEX_SUFFIX)
            times = b"" if self.removed else await self.read_index_file(TIMES_SUFFIX)
            if self.indexes is None and not self.removed:
                self._parse_indexes(offsets, times)
                if self.indexes is None:
                    await self.rebuild_indexes()
        return None if self.removed else self.indexes

    async def rebuild_indexes(self) -> tuple[int, int, str] | None:
        """Rebuild the indexes from the batches while appends go on.

        Returns position, offset and problem of the first batch that cannot be read, if there is one.
        """
        truncations, position, expected, bad = self.truncations, 0, self.base, None
        indexes = Indexes(self.base, self.interval_bytes)
        while position < self.size and bad is None and not self.removed:
            async for batch in self.walk(position):
                header = batch.header
                if batch.problem is not None or header is None:
                    bad = batch.position, expected, batch.problem or "unreadable"
                    break
                indexes.add_batch(header.base_offset, batch.position, header.size, header.max_timestamp)
                position, expected = batch.position + header.size, header.last_offset + 1
        if truncations != self.truncations:  # batches that were truncated meanwhile may have been added
            return await self.rebuild_indexes()
        indexes.interval_bytes = self.interval_bytes
        indexes.add_time_entry()
        self.indexes, self.hint = indexes, (self.base, 0)
        return bad

    async def walk(self, position: int) -> AsyncIterator[WalkedBatch]:
        """The batches from `position` on, read off the event loop; ends early when the segment is removed meanwhile."""
        try:
            async for batch in walk_cold(self.file, position, self.size, check=False):
                yield batch
                if self.removed:
                    return
        except (OSError, ValueError) as error:  # ValueError: the file was closed
            if not self.removed:
                raise StorageFailed(f"cannot read {self.path_of(SEGMENT_SUFFIX)}: {error}") from error

    async def max_timestamp(self) -> int:
        """The highest timestamp. For a sealed segment the last entry of the time index file is enough."""
        if self.indexes is not None:
            return self.indexes.max_timestamp
        if self._max_timestamp is None:
            last = await self._max_timestamp_from_file()
            if last is None:
                indexes = await self.load()
                last = NO_TIMESTAMP if indexes is None else indexes.max_timestamp
            self._max_timestamp = last
        return self._max_timestamp

    async def _max_timestamp_from_file(self) -> int | None:
        return None if self.removed else read_max_timestamp(await self.read_index_file(TIMES_SUFFIX))

    async def load_first_timestamp(self) -> None:
        """For a segment that becomes the active one again."""
        if self.first_timestamp == NO_FIRST_TIMESTAMP and self.size:
            self.first_timestamp = read_header(await self.file.read_cold(0, BATCH_HEADER_BYTES)).base_timestamp

    async def read_index_file(self, suffix: str) -> bytes:
        """The content of an index file; empty when it cannot be read, since an index can be rebuilt."""
        path = self.path_of(suffix)
        if not self._disk.exists(path):
            return b""
        try:
            file = self._disk.open(path)
        except OSError:  # for example when no file descriptors are left
            return b""
        try:
            return await file.read_cold(0, file.size())
        except OSError:
            return b""
        finally:
            file.close()

    async def save_indexes(self) -> None:
        """Write what is new to the index files and fsync them. The caller fsyncs the folder."""
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
        except BaseException:  # also a cancelled checkpoint: it has written, and not fsynced
            self.indexes.mark_files_stale()
            raise
        finally:
            for file in files:
                file.close()

    def unload_indexes(self) -> None:
        """Free the memory of a sealed segment whose index files are up to date; they are loaded again at next use."""
        assert self.indexes is not None
        self._max_timestamp = self.indexes.max_timestamp
        self.indexes = None

    def remove_files(self) -> None:
        """Remove all files except the index of aborted transactions.

        A missing index of aborted transactions means that there are none, so it is not rebuilt: should a crash bring
        the segment back, its index must still be there. Remove it with `remove_aborted_index` once the removal of the
        segment is durable.
        """
        self.removed = True
        self.file.close()
        for suffix in (INDEX_SUFFIX, TIMES_SUFFIX, SEGMENT_SUFFIX):
            self._remove(suffix)

    def remove_aborted_index(self) -> None:
        self._remove(ABORTED_SUFFIX)

    def _remove(self, suffix: str) -> None:
        if self._disk.exists(self.path_of(suffix)):
            self._disk.remove(self.path_of(suffix))
