"""Step through a segment file, batch by batch.

The walk says what it wants to read and is fed with it, so that the same steps serve start-up and tools, which may wait
for the disk, and a serving loop, which may not. It ends at `stop`, or at the first bytes that are no whole batch: that
one is told with its `problem`. Memory is bounded by a chunk, or by one batch where that is larger.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Final, NamedTuple

from tailrace.model.limits import BATCH_HEADER_BYTES, RECORD_BATCH_MAX_BYTES, MiB
from tailrace.ports.disk import Buffer, File
from tailrace.records.crc import crc32c
from tailrace.records.header import CHECKED_FROM, PREFIX_BYTES, BatchHeader, read_header

CHUNK_BYTES: Final = MiB


class Found(NamedTuple):
    position: int
    header: BatchHeader | None  # None when not even that can be read
    data: memoryview  # the whole batch; empty when there is a problem with its length
    problem: str | None


class Walk:
    def __init__(self, position: int, stop: int, *, check: bool) -> None:
        self._position = position
        self._stop = stop
        self._check = check  # whether checksums are compared
        self._wants = CHUNK_BYTES

    @property
    def wants(self) -> tuple[int, int] | None:
        """Position and size of what `feed` is to be given next; None at the end."""
        left = self._stop - self._position
        return (self._position, min(self._wants, left)) if left > 0 else None

    def feed(self, data: Buffer) -> Iterator[Found]:
        view = memoryview(data)
        asked = min(self._wants, self._stop - self._position)
        at = 0
        while self._position < self._stop:
            needs = self._needs(view, at)
            if isinstance(needs, str):
                yield self._end(view, at, needs)
                return
            if at + needs > len(view):
                break
            found = Found(self._position, read_header(view, at), view[at : at + needs], None)
            if self._check and crc32c(found.data[CHECKED_FROM:]) != read_header(view, at).crc:
                yield self._end(view, at, "the checksum does not fit")
                return
            at += needs
            self._position += needs
            yield found
        if at == 0 and len(view) < asked:
            yield self._end(view, at, f"the file ends here, {self._stop - self._position} bytes early")

    def _needs(self, view: memoryview, at: int) -> int | str:
        """How many bytes the batch at `at` has, as far as one can tell; or why it is none."""
        left = self._stop - self._position
        if left < BATCH_HEADER_BYTES:
            return f"{left} bytes, less than a batch's header"
        if len(view) - at < BATCH_HEADER_BYTES:
            self._wants = CHUNK_BYTES
            return BATCH_HEADER_BYTES
        header = read_header(view, at)
        size = header.length + PREFIX_BYTES
        if header.magic != 2:
            return f"magic byte {header.magic}"
        if not BATCH_HEADER_BYTES <= size <= RECORD_BATCH_MAX_BYTES:
            return f"a batch of {size} bytes"
        if size > left:
            return f"a batch of {size} bytes where {left} are left"
        if header.last_offset_delta < 0:
            return f"last offset delta {header.last_offset_delta}"
        self._wants = max(CHUNK_BYTES, size)
        return size

    def _end(self, view: memoryview, at: int, problem: str) -> Found:
        header = read_header(view, at) if len(view) - at >= BATCH_HEADER_BYTES else None
        position, self._position = self._position, self._stop
        return Found(position, header, view[:0], problem)


def walk(file: File, position: int, stop: int, *, check: bool) -> Iterator[Found]:
    """The batches of a file, waiting for the disk: for start-up and tools."""
    steps = Walk(position, stop, check=check)
    while (wants := steps.wants) is not None:
        yield from steps.feed(file.read(*wants))


async def walk_in_turns(file: File, position: int, stop: int, *, check: bool) -> AsyncIterator[Found]:
    """The same, and the loop gets its turn every chunk."""
    turn = position + CHUNK_BYTES
    for found in walk(file, position, stop, check=check):
        yield found
        if found.position > turn:
            turn = found.position + CHUNK_BYTES
            await asyncio.sleep(0)


async def walk_cold(file: File, position: int, stop: int, *, check: bool) -> AsyncIterator[Found]:
    """The batches of a file, read off the loop."""
    steps = Walk(position, stop, check=check)
    while (wants := steps.wants) is not None:
        for found in steps.feed(await file.read_cold(*wants)):
            yield found
