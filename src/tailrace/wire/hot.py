"""Primitives of the hand-written codecs of Produce and Fetch: a frame and a position in, a value and the next out.

Reading itself checks most bounds: past the end of the frame `struct` and indexing raise, and the callers turn that into
one `WireError`. Slicing does not raise, so functions that slice check the length first. Bytes after the last field are
ignored, as in every request: some clients send a few.
"""

import struct
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from tailrace.model.limits import CLIENT_TEXT_MAX_BYTES, PARTITIONS_PER_REQUEST_MAX, TAGGED_FIELDS_MAX
from tailrace.wire.primitives import (
    WireError,
    read_uvarint,
    size_too_large,
    skip_tags,
    tag_size_wrong,
    text_too_long,
    too_many_tags,
    uvarint,
)

INT16: Final = struct.Struct(">h")
INT32: Final = struct.Struct(">i")
INT64: Final = struct.Struct(">q")

Tags = dict[int, memoryview]  # the encoded value of each tagged field


class Endpoint(NamedTuple):
    """The address of a leader that a response names (KIP-951)."""

    broker: int
    host: str
    port: int
    rack: str | None


def string(frame: memoryview, at: int) -> tuple[str | None, int]:
    (size,) = INT16.unpack_from(frame, at)
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
    if size > CLIENT_TEXT_MAX_BYTES:
        raise text_too_long("a name", size, len(frame) - at)
    if at + size > len(frame):
        raise IndexError(f"text of {size} bytes at byte {at}, {len(frame) - at} are left")
    return str(frame[at : at + size], "utf-8")


def slice_of(frame: memoryview, at: int, size: int) -> tuple[memoryview | None, int]:
    if size < 0:
        return None, at
    if at + size > len(frame):
        raise IndexError(f"records of {size} bytes at byte {at}, {len(frame) - at} are left")
    return frame[at : at + size], at + size


def bounded(count: int, frame: memoryview, at: int) -> int:
    if count > len(frame) - at or count > PARTITIONS_PER_REQUEST_MAX:
        raise WireError(f"an array declares {count} elements, {len(frame) - at} bytes are left")
    return max(count, 0)


def read_tags(frame: memoryview, at: int) -> tuple[Tags, int]:
    """The tagged fields at `at`, not decoded, and the position after them."""
    count, at = read_uvarint(frame, at)
    if count > TAGGED_FIELDS_MAX:
        raise too_many_tags("a struct", count)
    tags: Tags = {}
    for _ in range(count):
        tag, at = read_uvarint(frame, at)
        size, at = read_uvarint(frame, at)
        if size > len(frame) - at:
            raise size_too_large("a tagged field", size, len(frame) - at)
        tags[tag] = frame[at : at + size]
        at += size
    return tags, at


def tagged_value(tags: Tags, tag: int, layout: struct.Struct) -> Any:
    """The value of a tagged field that is one value of fixed width; None if the tag is absent."""
    value = tags.get(tag)
    if value is None:
        return None
    if len(value) != layout.size:
        raise tag_size_wrong("a struct", tag, len(value))
    return layout.unpack(value)[0]


def tagged_struct(tags: Tags, tag: int, layout: struct.Struct) -> tuple[Any, ...] | None:
    """The fields of a tagged struct of fixed width; None if the tag is absent. Tags inside the struct are skipped."""
    value = tags.get(tag)
    if value is None:
        return None
    if len(value) <= layout.size or skip_tags(value, layout.size, len(value)) != len(value):
        raise tag_size_wrong("a struct", tag, len(value))
    return layout.unpack_from(value)


def endpoints_tags(endpoints: Sequence[Endpoint]) -> bytes:
    """The tagged fields at the end of a response: none, or NodeEndpoints (tag 0)."""
    if not endpoints:
        return b"\0"
    value = bytearray(uvarint(len(endpoints) + 1))
    for broker, host, port, rack in endpoints:
        value += INT32.pack(broker) + _compact(host) + INT32.pack(port)
        value += b"\0\0" if rack is None else _compact(rack) + b"\0"
    return b"\1\0" + uvarint(len(value)) + value


def _compact(value: str) -> bytes:
    raw = value.encode()
    return uvarint(len(raw) + 1) + raw
