"""Primitive types of Kafka's encoding, and `WireError`, raised for everything that cannot be decoded or encoded.

A length or count has two forms. The classic form is a signed int16 or int32, -1 for null. The compact form, of flexible
versions, is an unsigned varint of the length plus one, 0 for null. A varint has seven bits per byte, lowest bits first;
Kafka's have 32 bits, hence at most five bytes. Structs of flexible versions end with tagged fields: a count, then tag,
size and bytes of each; a reader skips tags that it does not know.

The functions at the end build a `WireError` for the caller to raise: compiled codecs have only the condition inline,
the message text is made here.
"""

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from tailrace.model.limits import ARRAY_MAX_ELEMENTS, CLIENT_TEXT_MAX_BYTES, TAGGED_FIELDS_MAX
from tailrace.records.varints import unsigned_varint

VARINT_MAX_BYTES: Final = 5
UINT32_MAX: Final = 2**32 - 1


class WireError(ValueError):
    """Bytes that cannot be decoded, or a value that cannot be encoded; `str(error)` says which field and why."""


def uvarint(value: int) -> bytes:
    if value < 128:
        return bytes((value,))
    if value > UINT32_MAX:
        raise WireError(f"{value} does not fit into a 32-bit varint")
    return unsigned_varint(value)


def read_uvarint(view: memoryview, position: int) -> tuple[int, int]:
    """The value and the position after it; IndexError if it is truncated, as in the compiled codecs."""
    value = view[position]
    if value < 128:
        return value, position + 1
    return read_long_uvarint(value, view, position + 1)


def read_long_uvarint(first: int, view: memoryview, position: int) -> tuple[int, int]:
    """The rest of a varint of several bytes, given its first byte."""
    value = first & 127
    for shift in range(7, 7 * VARINT_MAX_BYTES, 7):
        byte = view[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            if value > UINT32_MAX:
                raise WireError(f"varint {value} has more than 32 bits")
            return value, position
    raise WireError(f"a varint has more than {VARINT_MAX_BYTES} bytes")


def skip_tags(view: memoryview, position: int, limit: int) -> int:
    """The position after tagged fields, none of which the caller knows."""
    count, position = read_uvarint(view, position)
    if count > TAGGED_FIELDS_MAX:
        raise too_many_tags("a struct", count)
    for _ in range(count):
        _, position = read_uvarint(view, position)
        size, position = read_uvarint(view, position)
        if size > limit - position:
            raise size_too_large("a tagged field", size, limit - position)
        position += size
    return position


@lru_cache(maxsize=256)
def array_packer(code: str, count: int) -> Callable[..., bytes]:
    return struct.Struct(f">{count}{code}").pack


@lru_cache(maxsize=256)
def array_unpacker(code: str, count: int) -> Callable[[memoryview, int], tuple[Any, ...]]:
    return struct.Struct(f">{count}{code}").unpack_from


def too_many_elements(what: str) -> WireError:
    return WireError(f"{what}: the arrays of this message have too many elements in total; send smaller requests")


def size_too_large(what: str, size: int, left: int) -> WireError:
    if size < 0:
        return null_not_allowed(what)
    return WireError(f"{what} declares {size} bytes, {left} are left")


def text_too_long(what: str, size: int, left: int) -> WireError:
    if size > CLIENT_TEXT_MAX_BYTES:
        return WireError(f"{what} declares {size} bytes, text may have at most {CLIENT_TEXT_MAX_BYTES}")
    return size_too_large(what, size, left)


def count_too_large(what: str, count: int, element_min_bytes: int, left: int) -> WireError:
    if count < 0:
        return null_not_allowed(what)
    if count > ARRAY_MAX_ELEMENTS:
        return WireError(f"{what} declares {count} elements, an array may have at most {ARRAY_MAX_ELEMENTS}")
    return WireError(f"{what} declares {count} elements of at least {element_min_bytes} bytes, {left} are left")


def null_not_allowed(what: str) -> WireError:
    return WireError(f"{what} cannot be null")


def field_not_in_version(what: str, version: int, value: object) -> WireError:
    return WireError(f"{what} is not part of version {version}, so it cannot be {value!r}")


def too_many_tags(what: str, count: int) -> WireError:
    return WireError(f"{what} declares {count} tagged fields, at most {TAGGED_FIELDS_MAX} are allowed")


def tag_size_wrong(what: str, tag: int, size: int) -> WireError:
    return WireError(f"tagged field {tag} of {what} does not fill the {size} bytes it declares")


def id_size_wrong(what: str, value: bytes) -> WireError:
    return WireError(f"{what} has {len(value)} bytes, an id must have 16")
