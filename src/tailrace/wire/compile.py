"""Values to bytes and back: the codec of (message, version) is compiled at its first use and kept.

    request, end = decode(MetadataRequest, 9, frame, position)
    body = encode(MetadataResponse(…), 9)

Whatever is wrong with bytes or value comes out as one `WireError`. Buffers of any kind are read in place: `Records`
come out as views of the buffer and are valid as long as it is, everything else is copied.
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
    """The message at `position`, and where it ends; `at_most` so many elements may its arrays hold together."""
    declared: type = cls
    read = _decoder(declared, version)
    view = memoryview(buffer)
    try:
        value, end = read(view, position, len(view), [at_most])
    except (struct.error, IndexError) as error:
        raise WireError(f"{cls.__name__} version {version} goes on after the last of {len(view)} bytes") from error
    except UnicodeDecodeError as error:
        raise WireError(f"{cls.__name__} version {version} holds text that is not UTF-8: {error}") from error
    return value, end


def decode_whole(cls: type[T], version: int, buffer: Buffer, position: int = 0) -> T:
    """The message that reaches from `position` to the end of the buffer."""
    value, end = decode(cls, version, buffer, position)
    if end != len(buffer):
        raise WireError(f"{cls.__name__} version {version} is followed by {len(buffer) - end} bytes too many")
    return value


def encode(value: object, version: int) -> bytes:
    out = bytearray()
    encode_into(out, value, version)
    return bytes(out)


def encode_into(out: bytearray, value: object, version: int) -> None:
    """Append the message to `out`; after a WireError `out` may hold a part of it."""
    cls: type = type(value)
    write = _encoder(cls, version)
    try:
        write(value, out)
    except (struct.error, UnicodeEncodeError) as error:
        raise WireError(f"{cls.__name__} version {version} cannot be written: {error}") from error


def is_flexible(cls: type, version: int) -> bool:
    """Whether this version has compact lengths and tagged fields; WireError if there is no such version."""
    said = declaration(cls)
    if version not in said.versions:
        raise WireError(f"{cls.__name__} has no version {version}, only {said.versions}")
    return version in said.flexible


@cache
def _decoder(cls: type, version: int) -> Decode:
    return decoder(cls, version, is_flexible(cls, version))


@cache
def _encoder(cls: type, version: int) -> Encode:
    return encoder(cls, version, is_flexible(cls, version))
