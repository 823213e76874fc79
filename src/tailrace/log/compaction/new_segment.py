"""The segment that a compaction pass writes: its batches, its indexes and its aborted transactions, all in files whose
names end with `.cleaned` until they replace the old ones (`swap`)."""

from collections.abc import Sequence
from typing import Final

from tailrace.log.compaction.swap import cleaned_path
from tailrace.log.file_names import ABORTED_SUFFIX, INDEX_SUFFIX, SEGMENT_SUFFIX, TIMES_SUFFIX
from tailrace.log.index.segment_indexes import Indexes
from tailrace.log.segment import Segment
from tailrace.log.state.aborted_index import Aborted, AbortedIndex
from tailrace.ports.disk import Buffer, Disk
from tailrace.records.header import read_header

WRITTEN_AT_ONCE_BYTES: Final = 1 << 20


class NewSegment:
    def __init__(self, disk: Disk, folder: str, base: int, interval_bytes: int) -> None:
        self._disk = disk
        self._folder = folder
        self._base = base
        self._interval_bytes = interval_bytes
        self._indexes = Indexes(base, interval_bytes)
        self._file = disk.open(cleaned_path(folder, base, SEGMENT_SUFFIX))
        self._file.truncate(0)
        self.size = 0
        self.end = base  # the offset after its last batch
        self.removed_markers: dict[int, None] = {}  # offsets of the markers that are no longer in it
        self.aborted: AbortedIndex | None = None
        self.suffixes: list[str] = []  # of its files, once it is finished

    def add(self, data: Buffer) -> None:
        """Write whole batches."""
        at = 0
        while at < len(data):
            header = read_header(data, at)
            assert header.base_offset == self.end, f"batch at {header.base_offset} after offset {self.end - 1}"
            self._indexes.add_batch(header.base_offset, self.size + at, header.size, header.max_timestamp)
            at, self.end = at + header.size, header.last_offset + 1
        if data:
            self._file.write(data, self.size)
            self.size += len(data)

    async def finish(self, aborted: Sequence[Aborted]) -> None:
        """Make it durable, with its indexes; `aborted` are the transactions whose abort markers are in it."""
        await self._file.sync()
        (offsets, _), (times, _) = self._indexes.take_unsaved()
        contents = {INDEX_SUFFIX: offsets, TIMES_SUFFIX: times}
        if aborted:
            self.aborted = AbortedIndex()
            for one in aborted:
                self.aborted.add(one)
            self.aborted.unsaved = False
            contents[ABORTED_SUFFIX] = self.aborted.dump()
        for suffix, content in contents.items():
            file = self._disk.open(cleaned_path(self._folder, self._base, suffix))
            try:
                file.truncate(0)
                file.write(content, 0)
                await file.sync()
            finally:
                file.close()
        self.suffixes = [SEGMENT_SUFFIX, *contents]
        await self._disk.sync_dir(self._folder)

    def close(self) -> None:
        self._file.close()

    def opened(self) -> Segment:
        """The segment under its final name, with its indexes loaded: they are in use, or unloaded by a checkpoint."""
        segment = Segment(self._disk, self._folder, self._base, self._interval_bytes)
        segment.indexes = self._indexes
        segment.unload_indexes()
        return segment
