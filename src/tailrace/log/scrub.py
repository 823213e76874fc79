"""Scrubbing: read a log from its start to its end, and compare every checksum, also of data that no client reads.

Each segment is read in small pieces, so that the event loop is never blocked for long, and stepped through by the loop
that also serves consumers (`reader.extract`): it compares checksums, and offsets with their neighbours. What is in the
page cache is checked there; anything else is read in a thread, and not kept in the page cache afterwards.

Bad bytes are read once more, from the disk. Only what is still bad then is damage: it may have been a fault of the
memory, or of the way from the disk. A segment that is removed, replaced or truncated meanwhile is left.
"""

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from tailrace.log.file_names import SEGMENT_SUFFIX
from tailrace.log.reader import extract
from tailrace.log.segment import Segment
from tailrace.model.limits import BATCH_HEADER_BYTES, KiB
from tailrace.ports.disk import Buffer

if TYPE_CHECKING:
    from tailrace.log.log import Log

logger: Final = logging.getLogger(__name__)

PIECE_BYTES: Final = 64 * KiB  # read and checked without a break; a larger batch is read as a whole


class Flaw(NamedTuple):
    """Bytes that are not the expected batch."""

    segment: Segment
    position: int
    offset: int
    reason: str

    def __str__(self) -> str:
        file = self.segment.path_of(SEGMENT_SUFFIX)
        return f"{file} at byte {self.position}, offset {self.offset}: {self.reason}"


class Piece(NamedTuple):
    size: int  # bytes that were checked and are good
    next_offset: int
    wants: int  # bytes that the next piece must have; 0: any number
    problem: str | None  # with what follows them


async def find_damage(log: "Log", moved: Callable[[int], Awaitable[None]]) -> Flaw | None:
    """The first damage in the log, confirmed by a second read. `moved` is awaited after each piece with its size."""
    for segment in list(log.segments):
        flaw = await _check(log, segment, moved)
        if flaw is not None:
            return flaw
    return None


async def _check(log: "Log", segment: Segment, moved: Callable[[int], Awaitable[None]]) -> Flaw | None:
    position, offset, wants, truncations = 0, segment.base, PIECE_BYTES, segment.truncations
    suspected = -1  # the position of bad bytes that are being read for the second time
    while position < segment.size and log.damage is None:
        size = min(max(wants, PIECE_BYTES), segment.size - position)
        piece = await _read_piece(log, segment, position, offset, size)
        if segment.removed or segment.truncations != truncations:
            return None
        if piece.problem is not None and piece.size == 0:
            flaw = Flaw(segment, position, offset, piece.problem)
            if suspected == position:
                return flaw
            suspected = position
            logger.warning("the scrub read bad bytes, reading them a second time: %s", flaw)
            _forget(segment, position, size)
            continue
        if piece.size and suspected == position:
            logger.warning(
                "%s at byte %d: good at the second read; check the memory and the disk's cable",
                segment.path_of(SEGMENT_SUFFIX),
                position,
            )
        position, offset, wants = position + piece.size, piece.next_offset, piece.wants
        await moved(piece.size)
    return None


async def _read_piece(log: "Log", segment: Segment, position: int, offset: int, size: int) -> Piece:
    try:
        data: Buffer | None = segment.file.read_cached(position, size)
        if data is None or len(data) < size:
            data = await segment.file.read_cold(position, size)
            _forget(segment, position, size)
    except (OSError, ValueError) as error:  # ValueError: the file was closed
        return Piece(0, offset, 0, f"cannot be read: {error}")
    left = segment.size - position - len(data) if len(data) == size else 0  # a short read: the file ends there
    if len(data) < BATCH_HEADER_BYTES:
        return Piece(0, offset, 0, "the file ends too early")
    taken = extract(memoryview(data), offset, offset, len(data), log.end, log.end, left, segment.has_gaps)
    if taken.first >= 0:
        return Piece(taken.after, taken.next_offset, 0, taken.problem)
    return Piece(0, offset, taken.wants, taken.problem or (None if taken.wants else "the segment ends within a batch"))


def _forget(segment: Segment, position: int, size: int) -> None:
    with suppress(OSError, ValueError):  # only a hint; the next read says what is wrong
        segment.file.forget_cached(position, size)
