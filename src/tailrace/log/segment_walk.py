"""Step through a segment file batch by batch.

`Walk` does no I/O: it names the bytes it needs next (`wants`) and is given them (`feed`). So the same steps serve
callers that may block on the disk (start-up, command-line tools) and the event loop, which may not. A walk ends at
`stop`, or at the first bytes that are not a complete, plausible batch; those are returned as the last item, with a
`problem`. Memory use is bounded by one chunk, or by one batch where that is larger.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Final, NamedTuple

from tailrace.model.limits import BATCH_HEADER_BYTES, RECORD_BATCH_MAX_BYTES, MiB
from tailrace.ports.disk import Buffer, File
from tailrace.records.crc import crc32c
from tailrace.records.header import CHECKED_FROM, PREFIX_BYTES, BatchHeader, read_header

CHUNK_BYTES: Final = MiB


class WalkedBatch(NamedTuple):
    position: int
    header: BatchHeader | None  # None when fewer bytes than a header are left
    data: memoryview  # the whole batch; empty when there is a problem
    problem: str | None


class Walk:
    def __init__(self, position: int, stop: int, *, check: bool) -> None:
        self._position = position
        self._stop = stop
        self._check = check  # whether checksums are compared
        self._wants = CHUNK_BYTES

    @property
    def wants(self) -> tuple[int, int] | None:
        """Position and size of the bytes that `feed` needs next; None at the end."""
        left = self._stop - self._position
        return (self._position, min(self._wants, left)) if left > 0 else None

    def feed(self, data: Buffer) -> Iterator[WalkedBatch]:
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
            batch = WalkedBatch(self._position, read_header(view, at), view[at : at + needs], None)
            if self._check and (problem := checksum_problem(batch.data)) is not None:
                yield self._end(view, at, problem)
                return
            at += needs
            self._position += needs
            yield batch
        if at == 0 and len(view) < asked:
            yield self._end(view, at, f"the file ends {self._stop - self._position} bytes too early")

    def _needs(self, view: memoryview, at: int) -> int | str:
        """Bytes needed to go on: the size of the batch at `at`, or of a header; or why these bytes are not a batch."""
        left = self._stop - self._position
        if left < BATCH_HEADER_BYTES:
            return f"only {left} bytes are left, a batch header has {BATCH_HEADER_BYTES}"
        if len(view) - at < BATCH_HEADER_BYTES:
            self._wants = CHUNK_BYTES
            return BATCH_HEADER_BYTES
        header = read_header(view, at)
        size = header.length + PREFIX_BYTES
        if header.magic != 2:
            return f"the magic byte is {header.magic} instead of 2"
        if not BATCH_HEADER_BYTES <= size <= RECORD_BATCH_MAX_BYTES:
            return f"the header gives an impossible batch size of {size} bytes"
        if size > left:
            return f"the header gives a batch size of {size} bytes, only {left} are left"
        if header.last_offset_delta < 0:
            return f"the last offset delta is {header.last_offset_delta}"
        self._wants = max(CHUNK_BYTES, size)
        return size

    def _end(self, view: memoryview, at: int, problem: str) -> WalkedBatch:
        header = read_header(view, at) if len(view) - at >= BATCH_HEADER_BYTES else None
        position, self._position = self._position, self._stop
        return WalkedBatch(position, header, view[:0], problem)


def checksum_problem(batch: memoryview) -> str | None:
    """None when the batch matches the CRC-32C in its header."""
    stored, computed = read_header(batch).crc, crc32c(batch[CHECKED_FROM:])
    return None if stored == computed else f"checksum mismatch (stored {stored:#010x}, computed {computed:#010x})"


def walk(file: File, position: int, stop: int, *, check: bool) -> Iterator[WalkedBatch]:
    """The batches of a file; blocks on the disk: for start-up and command-line tools."""
    steps = Walk(position, stop, check=check)
    while (wants := steps.wants) is not None:
        yield from steps.feed(file.read(*wants))


async def walk_in_turns(file: File, position: int, stop: int, *, check: bool) -> AsyncIterator[WalkedBatch]:
    """Like `walk`, but yields to the event loop after every chunk, and reads off the loop what is not cached.

    So several logs are recovered at the same time: while one waits for the disk, another is checked.
    """
    steps = Walk(position, stop, check=check)
    while (wants := steps.wants) is not None:
        data = file.read_cached(*wants)
        if data is None or len(data) < wants[1]:
            data = await file.read_cold(*wants)
        for batch in steps.feed(data):
            yield batch
        await asyncio.sleep(0)


async def walk_cold(file: File, position: int, stop: int, *, check: bool) -> AsyncIterator[WalkedBatch]:
    """Like `walk`, but reads off the event loop."""
    steps = Walk(position, stop, check=check)
    while (wants := steps.wants) is not None:
        for batch in steps.feed(await file.read_cold(*wants)):
            yield batch
