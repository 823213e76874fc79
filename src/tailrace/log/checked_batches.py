"""Cut whole, checked batches out of bytes that were read from a segment.

The one loop that every byte a consumer gets has passed through: it steps over batches before the wanted offset, and
takes those after it while they fit, compare with their checksum and lie wholly below the limit. It looks at 27 bytes of
each header. Offsets lie outside the checksum, so they are held against their neighbours: each batch begins where the
one before ended, or later where gaps are known.
"""

import struct
from typing import Final, NamedTuple

from tailrace.model.limits import BATCH_HEADER_BYTES, RECORD_BATCH_MAX_BYTES
from tailrace.ports.disk import Buffer
from tailrace.records.crc import crc32c
from tailrace.records.header import CHECKED_FROM, PREFIX_BYTES

STEP: Final = struct.Struct(">qi4xbI2xi")  # base offset, length, magic, checksum, last offset delta
SIZE_MIN_BYTES: Final = BATCH_HEADER_BYTES - PREFIX_BYTES


class Read(NamedTuple):
    """Whole batches, checked. The first may begin below the offset asked for."""

    data: Buffer
    next_offset: int  # where to go on; what was asked for, when there is nothing


class Taken(NamedTuple):
    first: int  # where the first batch taken begins in the bytes
    after: int  # where the first one not taken begins
    next_offset: int  # after the last batch taken or stepped over
    wants: int  # bytes that the batch at `after` needs, when nothing was taken because too few are there
    problem: str | None  # what is wrong with the batch at `after`


def take(
    view: memoryview, expected: int, offset: int, max_bytes: int, limit: int, end: int, left: int, has_gaps: bool
) -> Taken:
    """What can be served from `view`, which begins with a batch at `expected` and has `left` bytes behind it.

    `limit` is where readers stop, `end` where the log does.
    """
    got = len(view)
    at = 0
    first = -1
    unpack = STEP.unpack_from
    while got - at >= BATCH_HEADER_BYTES:
        base, length, magic, checksum, delta = unpack(view, at)
        after = at + PREFIX_BYTES + length
        last = base + delta
        if (
            (base != expected and not (has_gaps and base > expected))
            or delta < 0
            or last >= end
            or magic != 2
            or length < SIZE_MIN_BYTES
        ):
            return Taken(first, at, expected, 0, f"a header with offsets {base} to {last} where {expected} is due")
        if last >= limit:
            return Taken(first, at, expected, 0, None)
        if after > got:
            if length > RECORD_BATCH_MAX_BYTES or after > got + left:
                return Taken(first, at, expected, 0, f"a batch of {after - at} bytes")
            return Taken(first, at, expected, 0 if first >= 0 else after - at, None)
        if last >= offset:
            if first < 0:
                first = at
            elif after - first > max_bytes:
                return Taken(first, at, expected, 0, None)
            if crc32c(view[at + CHECKED_FROM : after]) != checksum:
                return Taken(first if first < at else -1, at, expected, 0, "the checksum does not fit")
        at = after
        expected = last + 1
    rest = got - at + left
    if 0 < rest < BATCH_HEADER_BYTES:
        return Taken(first, at, expected, 0, f"{rest} bytes, less than a batch's header")
    wants = BATCH_HEADER_BYTES if first < 0 and rest else 0
    return Taken(first, at, expected, wants, None)
