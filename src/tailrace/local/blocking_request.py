"""One request to one broker over a blocking socket, and its response.

There is no event loop here: callers are command lines, threads, and tests that have a loop of their own. How long a
request may take is the timeout of the socket.
"""

import socket
from collections.abc import Mapping
from typing import Any, Final

from tailrace.model.limits import FRAME_MAX_BYTES
from tailrace.wire.compile import decode_whole, encode_into, is_flexible
from tailrace.wire.framing import LENGTH_BYTES, LENGTH_LAYOUT
from tailrace.wire.headers import read_response_header, request_header
from tailrace.wire.messages import MESSAGES
from tailrace.wire.messages.api_versions import ApiVersionsRequest
from tailrace.wire.primitives import WireError
from tailrace.wire.schema import declaration

CLIENT_ID: Final = "tailrace-view"


def versions_of(connection: socket.socket) -> dict[int, int]:
    """By API key, the latest version that both sides support. Every broker answers ApiVersions in version 0."""
    api_key = declaration(ApiVersionsRequest).number
    offered = ask(connection, ApiVersionsRequest(), {api_key: 0}).api_keys
    return {
        one.api_key: min(one.max_version, MESSAGES[one.api_key].versions.last)
        for one in offered
        if one.api_key in MESSAGES
    }


def ask(connection: socket.socket, request: object, versions: Mapping[int, int]) -> Any:
    """The response, in the version that `versions` has for this API. WireError when the broker does not have the API
    or the response cannot be decoded, OSError when none comes."""
    api_key = declaration(type(request)).number
    if api_key not in versions:
        raise WireError(f"the broker does not support {MESSAGES[api_key].name}")
    version, response = versions[api_key], MESSAGES[api_key].response
    frame = bytearray(LENGTH_BYTES)
    frame += request_header(api_key, version, api_key, CLIENT_ID, is_flexible(type(request), version))
    encode_into(frame, request, version)
    LENGTH_LAYOUT.pack_into(frame, 0, len(frame) - LENGTH_BYTES)
    connection.sendall(frame)
    (length,) = LENGTH_LAYOUT.unpack(_read(connection, LENGTH_BYTES))
    if not 0 < length <= FRAME_MAX_BYTES:
        raise WireError(f"the response claims a length of {length} bytes")
    received = _read(connection, length)
    _, at = read_response_header(received, 0, api_key, is_flexible(response, version))
    return decode_whole(response, version, received, at)


def _read(connection: socket.socket, count: int) -> bytes:
    got = bytearray()
    while len(got) < count:
        more = connection.recv(count - len(got))
        if not more:
            raise WireError("the connection was closed before the response was complete")
        got += more
    return bytes(got)
