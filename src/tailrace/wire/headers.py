"""Request and response headers: API key, API version, correlation id and client id.

A request of a flexible API version has header version 2, which ends with tagged fields; other requests have header
version 1. The client id is a string with an int16 length in both. A response has header version 1, with tagged fields,
if its version is flexible, else header version 0. ApiVersions is the exception: its response header is always version
0, because the client does not know yet which versions the broker supports.
"""

import struct
from collections.abc import Mapping
from typing import Final

from tailrace.ports.disk import Buffer
from tailrace.wire.primitives import WireError, size_too_large, skip_tags

REQUEST_START: Final = struct.Struct(">hhih")  # API key, version, correlation id, length of the client id
RESPONSE_START: Final = struct.Struct(">i")
REQUEST_START_BYTES: Final = REQUEST_START.size
RESPONSE_START_BYTES: Final = RESPONSE_START.size
NO_TAGS: Final = b"\x00"
NEVER_FLEXIBLE: Final = 32767
PRODUCE_KEY: Final = 0
API_VERSIONS_KEY: Final = 18


def read_request_header(
    buffer: Buffer, position: int, flexible_since: Mapping[int, int]
) -> tuple[int, int, int, str | None, int]:
    """API key, version, correlation id, client id, and the position of the body.

    `flexible_since` maps an API key to its first flexible version. An API that is missing there is unknown: its header
    is read as version 1, and whether tagged fields follow cannot be known.
    """
    try:
        api_key, version, correlation_id, size = REQUEST_START.unpack_from(buffer, position)
        position += REQUEST_START_BYTES
        client_id = None
        if size >= 0:
            end = position + size
            if end > len(buffer):
                raise size_too_large("the client id", size, len(buffer) - position)
            client_id = str(buffer[position:end], "utf-8")
            position = end
        if version >= flexible_since.get(api_key, NEVER_FLEXIBLE):
            if buffer[position]:
                position = skip_tags(memoryview(buffer), position, len(buffer))
            else:
                position += 1
    except (struct.error, IndexError) as error:
        raise WireError(f"the request header is truncated: it ends at byte {len(buffer)}") from error
    except UnicodeDecodeError as error:
        raise WireError(f"the client id is not UTF-8: {error}") from error
    return api_key, version, correlation_id, client_id, position


def request_header(api_key: int, version: int, correlation_id: int, client_id: str | None, flexible: bool) -> bytes:
    name = b"" if client_id is None else client_id.encode()
    size = -1 if client_id is None else len(name)
    try:
        start = REQUEST_START.pack(api_key, version, correlation_id, size)
    except struct.error as error:
        raise WireError(f"the request header cannot be encoded: {error}") from error
    return start + name + NO_TAGS if flexible else start + name


def has_flexible_response_header(api_key: int, flexible: bool) -> bool:
    """Whether tagged fields follow the correlation id, given whether the body is flexible."""
    return flexible and api_key != API_VERSIONS_KEY


def response_header(api_key: int, correlation_id: int, flexible: bool) -> bytes:
    start = RESPONSE_START.pack(correlation_id)
    return start + NO_TAGS if has_flexible_response_header(api_key, flexible) else start


def read_response_header(buffer: Buffer, position: int, api_key: int, flexible: bool) -> tuple[int, int]:
    """The correlation id and the position of the body."""
    try:
        (correlation_id,) = RESPONSE_START.unpack_from(buffer, position)
        position += RESPONSE_START_BYTES
        if has_flexible_response_header(api_key, flexible):
            position = skip_tags(memoryview(buffer), position, len(buffer))
    except (struct.error, IndexError) as error:
        raise WireError(f"the response header is truncated: it ends at byte {len(buffer)}") from error
    return correlation_id, position
