"""Records of Tailrace's internal partitions: declared like messages, framed like Kafka's metadata records.

    frame version (1)   record type   record version   body          the first three are varints

A reader knows its classes by their type number. A kind or version that it does not know is an `UnknownRecord`: a state
machine that skipped a record would no longer be the one its log describes. So a new kind or version is written only
when every broker can read it (`cluster.features`).
"""

from collections.abc import Mapping
from struct import Struct
from types import MappingProxyType
from typing import Any, Final

from tailrace.ports.disk import Buffer
from tailrace.wire.compile import decode_whole, encode_into
from tailrace.wire.primitives import WireError, read_uvarint, uvarint
from tailrace.wire.schema import declaration

FRAME_VERSION: Final = 1
NUMBER: Final = Struct(">h")  # in Kafka's own format: a key's type, a value's version


class UnknownRecord(WireError):
    """A record whose kind or version this release does not know, named by both."""

    def __init__(self, kind: str, version: int, known: str) -> None:
        super().__init__(f"{kind}, version {version}; known are {known}")


def record_types(*classes: type) -> Mapping[int, type]:
    """Classes declared with `@record`, by type number, for `decode_record`."""
    found: dict[int, type] = {}
    for cls in classes:
        number = declaration(cls).number
        if number in found:
            raise TypeError(f"{cls.__name__} and {found[number].__name__} both have record type {number}")
        found[number] = cls
    return MappingProxyType(found)


def encode_record(value: object, version: int) -> bytes:
    """The framed record, in a version that every broker of the cluster can read (`cluster.features`)."""
    out = bytearray(uvarint(FRAME_VERSION) + uvarint(declaration(type(value)).number) + uvarint(version))
    encode_into(out, value, version)
    return bytes(out)


def leading_number(data: bytes) -> int:
    """The number that a key or a value in Kafka's own format begins with: its type or version."""
    if len(data) < NUMBER.size:
        raise WireError(f"record key or value of {len(data)} bytes is too short for its type or version")
    found: int = NUMBER.unpack_from(data)[0]
    return found


def check_version(cls: type, kind: str, version: int) -> None:
    """`UnknownRecord` if a declared record has no such version."""
    versions = declaration(cls).versions
    if version not in versions:
        raise UnknownRecord(kind, version, f"versions {versions}")


def decode_record(types: Mapping[int, type], data: Buffer) -> Any:
    view = memoryview(data)
    try:
        frame, position = read_uvarint(view, 0)
        number, position = read_uvarint(view, position)
        version, position = read_uvarint(view, position)
    except IndexError as error:
        raise WireError(f"a stored record of {len(view)} bytes is truncated: it ends before its body") from error
    if frame != FRAME_VERSION:
        raise UnknownRecord("record frame", frame, f"version {FRAME_VERSION}")
    cls = types.get(number)
    if cls is None:
        raise UnknownRecord(f"record type {number}", version, f"types {min(types)} to {max(types)}")
    check_version(cls, f"record type {number} ({cls.__name__})", version)
    return decode_whole(cls, version, view, position)
