"""One question to one broker over a plain socket that waits.

Tests ask from threads and from inside event loops alike, so there is none here; a socket's timeout is the patience.
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
    """The last version of each API that both sides speak; ApiVersions itself is answered in version 0 by everybody."""
    asked = declaration(ApiVersionsRequest).number
    offered = ask(connection, ApiVersionsRequest(), {asked: 0}).api_keys
    return {
        one.api_key: min(one.max_version, MESSAGES[one.api_key].versions.last)
        for one in offered
        if one.api_key in MESSAGES
    }


def ask(connection: socket.socket, request: object, versions: Mapping[int, int]) -> Any:
    """The answer, in the version named for this API. WireError when it makes no sense, OSError when none comes."""
    api_key = declaration(type(request)).number
    if api_key not in versions:
        raise WireError(f"the broker does not know {MESSAGES[api_key].name}")
    version, response = versions[api_key], MESSAGES[api_key].response
    frame = bytearray(LENGTH_BYTES)
    frame += request_header(api_key, version, api_key, CLIENT_ID, is_flexible(type(request), version))
    encode_into(frame, request, version)
    LENGTH_LAYOUT.pack_into(frame, 0, len(frame) - LENGTH_BYTES)
    connection.sendall(frame)
    (length,) = LENGTH_LAYOUT.unpack(_read(connection, LENGTH_BYTES))
    if not 0 < length <= FRAME_MAX_BYTES:
        raise WireError(f"an answer of {length} bytes")
    answer = _read(connection, length)
    _, at = read_response_header(answer, 0, api_key, is_flexible(response, version))
    return decode_whole(response, version, answer, at)


def _read(connection: socket.socket, count: int) -> bytes:
    got = bytearray()
    while len(got) < count:
        more = connection.recv(count - len(got))
        if not more:
            raise WireError("the connection ended before the answer did")
        got += more
    return bytes(got)
