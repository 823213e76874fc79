"""Encode messages to bytes and decode them: the codec of a (message, version) is compiled on first use and cached.

    request, end = decode(MetadataRequest, 9, frame, position)
    body = encode(MetadataResponse(…), 9)

Every malformed message and every value that cannot be encoded raises `WireError`. Any buffer type is read in place:
`Records` fields are views of the buffer, valid as long as the buffer is; all other values are copied.
"""

import struct
from functools import cache
from typing import TypeVar

from tailrace.model.limits import ELEMENTS_MAX
from tailrace.ports.disk import Buffer
from tailrace.wire.decoder import Decode, decoder
from tailrace.wire.encoder import Encode, encoder
from tailrace.wire.primitives import WireError
from tailrace.wire.schema import declaration

T = TypeVar("T")


def decode(cls: type[T], version: int, buffer: Buffer, position: int = 0, at_most: int = ELEMENTS_MAX) -> tuple[T, int]:
    """The message at `position`, and where it ends. Its arrays may hold `at_most` elements in total."""
    declared: type = cls
    read = _decoder(declared, version)
    view = memoryview(buffer)
    try:
        value, end = read(view, position, len(view), [at_most])
    except (struct.error, IndexError) as error:
        raise WireError(f"{cls.__name__} version {version} is truncated: it ends at byte {len(view)}") from error
    except UnicodeDecodeError as error:
        raise WireError(f"{cls.__name__} version {version} contains text that is not UTF-8: {error}") from error
    return value, end


def decode_whole(cls: type[T], version: int, buffer: Buffer, position: int = 0) -> T:
    """The message from `position` to the end of the buffer; trailing bytes are an error."""
    value, end = decode(cls, version, buffer, position)
    if end != len(buffer):
        raise WireError(f"{cls.__name__} version {version} has {len(buffer) - end} trailing bytes")
    return value


def encode(value: object, version: int) -> bytes:
    out = bytearray()
    encode_into(out, value, version)
    return bytes(out)


def encode_into(out: bytearray, value: object, version: int) -> None:
    """Append the message to `out`; after a WireError `out` may hold part of the message."""
    cls: type = type(value)
    write = _encoder(cls, version)
    try:
        write(value, out)
    except (struct.error, UnicodeEncodeError) as error:
        raise WireError(f"{cls.__name__} version {version} cannot be encoded: {error}") from error


def is_flexible(cls: type, version: int) -> bool:
    """Whether this version has compact lengths and tagged fields; WireError if there is no such version."""
    declared = declaration(cls)
    if version not in declared.versions:
        raise WireError(f"{cls.__name__} has no version {version}, only {declared.versions}")
    return version in declared.flexible


@cache
def _decoder(cls: type, version: int) -> Decode:
    return decoder(cls, version, is_flexible(cls, version))


@cache
def _encoder(cls: type, version: int) -> Encode:
    return encoder(cls, version, is_flexible(cls, version))
