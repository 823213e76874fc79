"""The atoms of Kafka's encoding, and the one error for bytes that are not what they say.

A length or count comes in two forms. The old one is a signed int16 or int32, -1 for null. The compact one, of
"flexible" versions, is an unsigned varint of the length plus one, 0 for null. A varint carries seven bits a byte,
lowest first; ours have 32 bits, so at most five bytes. Flexible structs end with tagged fields: a count, then
(tag, size, bytes) each; a reader skips those it does not know.

Functions whose names begin with a noun answer a `WireError` to be raised: the compiled codecs keep only the
condition inline, the sentence is made here.
"""

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from tailrace.model.limits import ARRAY_MAX_ELEMENTS, CLIENT_TEXT_MAX_BYTES, TAGGED_FIELDS_MAX

VARINT_MAX_BYTES: Final = 5
UINT32_MAX: Final = 2**32 - 1


class WireError(ValueError):
    """Bytes that are no message, or a message that cannot be bytes; `str(error)` says where and why."""


def uvarint(value: int) -> bytes:
    if value < 128:
        return bytes((value,))
    if value > UINT32_MAX:
        raise WireError(f"{value} does not fit the 32 bits of a varint")
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_uvarint(view: memoryview, position: int) -> tuple[int, int]:
    """The value and the position after it; IndexError where the bytes end, as in the compiled codecs."""
    value = view[position]
    if value < 128:
        return value, position + 1
    return read_long_uvarint(value, view, position + 1)


def read_long_uvarint(first: int, view: memoryview, position: int) -> tuple[int, int]:
    """A varint whose first byte has been read and says that more follow."""
    value = first & 127
    for shift in range(7, 7 * VARINT_MAX_BYTES, 7):
        byte = view[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            if value > UINT32_MAX:
                raise WireError(f"a varint of {value} has more than 32 bits")
            return value, position
    raise WireError(f"a varint goes on after {VARINT_MAX_BYTES} bytes")


def skip_tags(view: memoryview, position: int, limit: int) -> int:
    """Step over tagged fields none of which is known here."""
    count, position = read_uvarint(view, position)
    if count > TAGGED_FIELDS_MAX:
        raise many_tags("a struct", count)
    for _ in range(count):
        _, position = read_uvarint(view, position)
        size, position = read_uvarint(view, position)
        if size > limit - position:
            raise size_beyond("a tagged field", size, limit - position)
        position += size
    return position


@lru_cache(maxsize=256)
def array_packer(code: str, count: int) -> Callable[..., bytes]:
    return struct.Struct(f">{count}{code}").pack


@lru_cache(maxsize=256)
def array_unpacker(code: str, count: int) -> Callable[[memoryview, int], tuple[Any, ...]]:
    return struct.Struct(f">{count}{code}").unpack_from


def many_elements(what: str) -> WireError:
    return WireError(f"with {what} the arrays hold more elements than such a message may have: ask for less at once")


def size_beyond(what: str, size: int, left: int) -> WireError:
    if size < 0:
        return null_in(what)
    return WireError(f"{what} says it has {size} bytes, {left} are left")


def text_beyond(what: str, size: int, left: int) -> WireError:
    if size > CLIENT_TEXT_MAX_BYTES:
        return WireError(f"{what} says it has {size} bytes, text has at most {CLIENT_TEXT_MAX_BYTES}")
    return size_beyond(what, size, left)


def count_beyond(what: str, count: int, element_min_bytes: int, left: int) -> WireError:
    if count < 0:
        return null_in(what)
    if count > ARRAY_MAX_ELEMENTS:
        return WireError(f"{what} says it has {count} elements, an array has at most {ARRAY_MAX_ELEMENTS}")
    return WireError(f"{what} says it has {count} elements of at least {element_min_bytes} bytes, {left} are left")


def null_in(what: str) -> WireError:
    return WireError(f"{what} cannot be null")


def absent_in(what: str, version: int, value: object) -> WireError:
    return WireError(f"{what} is not part of version {version}, so it cannot be {value!r}")


def many_tags(what: str, count: int) -> WireError:
    return WireError(f"{what} says it has {count} tagged fields, it may have {TAGGED_FIELDS_MAX}")


def tag_size_wrong(what: str, tag: int, size: int) -> WireError:
    return WireError(f"tagged field {tag} of {what} is not the {size} bytes it says")


def id_size_wrong(what: str, value: bytes) -> WireError:
    return WireError(f"{what} has {len(value)} bytes, an id has 16")
