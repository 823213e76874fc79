"""Reading and packing by hand, for the two hot messages: a frame and a position in, a value and the next position out.

Bounds are checked by the reading itself: past the end, `struct` and indexing raise, and the callers turn that into one
`WireError`. Slices do not raise, so whatever slices asks for the length first. Bytes after the last field are passed
over, as in every request: some clients send a few.
"""

import struct
from typing import Final

from tailrace.model.limits import client_text_max_bytes, partitions_per_request_max
from tailrace.wire.primitives import WireError, read_uvarint, text_beyond

int16: Final = struct.Struct(">h")
int32: Final = struct.Struct(">i")


def string(frame: memoryview, at: int) -> tuple[str | None, int]:
    (size,) = int16.unpack_from(frame, at)
    at += 2
    if size < 0:
        return None, at
    return text(frame, at, size), at + size


def compact_string(frame: memoryview, at: int) -> tuple[str | None, int]:
    size, at = read_uvarint(frame, at)
    if size == 0:
        return None, at
    return text(frame, at, size - 1), at + size - 1


def text(frame: memoryview, at: int, size: int) -> str:
    if size > client_text_max_bytes:
        raise text_beyond("a name", size, len(frame) - at)
    if at + size > len(frame):
        raise IndexError(f"a text of {size} bytes at {at}, {len(frame) - at} are left")
    return str(frame[at : at + size], "utf-8")


def slice_of(frame: memoryview, at: int, size: int) -> tuple[memoryview | None, int]:
    if size < 0:
        return None, at
    if at + size > len(frame):
        raise IndexError(f"{size} bytes of records at {at}, {len(frame) - at} are left")
    return frame[at : at + size], at + size


def bounded(count: int, frame: memoryview, at: int) -> int:
    if count > len(frame) - at or count > partitions_per_request_max:
        raise WireError(f"a count of {count} with {len(frame) - at} bytes left")
    return max(count, 0)
