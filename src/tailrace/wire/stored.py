"""Records that we keep in partitions of our own: declared like messages, framed as Kafka frames its metadata.

    frame version (1)   record type   record version   body          the first three are varints

A reader knows its classes by their type number. What it does not know it refuses: a state machine that skipped a record
would no longer be the one its log describes. So a new version is written only when every broker can read it.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from tailrace.ports.disk import Buffer
from tailrace.wire.compile import decode_whole, encode_into
from tailrace.wire.primitives import WireError, read_uvarint, uvarint
from tailrace.wire.schema import declaration

FRAME_VERSION: Final = 1


def record_types(*classes: type) -> Mapping[int, type]:
    """Classes declared with `@record` by their type, for `decode_record`."""
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


def decode_record(types: Mapping[int, type], data: Buffer) -> Any:
    view = memoryview(data)
    try:
        frame, position = read_uvarint(view, 0)
        number, position = read_uvarint(view, position)
        version, position = read_uvarint(view, position)
    except IndexError as error:
        raise WireError(f"a record of {len(view)} bytes ends before its body") from error
    if frame != FRAME_VERSION:
        raise WireError(f"a record has frame version {frame}, we know only {FRAME_VERSION}")
    cls = types.get(number)
    if cls is None:
        raise WireError(f"record type {number} (version {version}) is not one we know")
    return decode_whole(cls, version, view, position)
