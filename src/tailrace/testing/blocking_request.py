"""One question to one broker over a plain socket that waits.

Tests ask from threads and from inside event loops alike, so there is none here; a socket's timeout is the patience.
"""

import socket
from collections.abc import Mapping
from typing import Any

from tailrace.model.limits import frame_max_bytes
from tailrace.wire.compile import decode_whole, encode_into, is_flexible
from tailrace.wire.framing import length_bytes, length_layout
from tailrace.wire.headers import read_response_header, request_header
from tailrace.wire.messages import messages
from tailrace.wire.messages.api_versions import ApiVersionsRequest
from tailrace.wire.primitives import WireError
from tailrace.wire.schema import declaration

client_id = "tailrace-view"


def versions_of(connection: socket.socket) -> dict[int, int]:
    """The last version of each API that both sides speak; ApiVersions itself is answered in version 0 by everybody."""
    asked = declaration(ApiVersionsRequest).number
    offered = ask(connection, ApiVersionsRequest(), {asked: 0}).api_keys
    return {
        one.api_key: min(one.max_version, messages[one.api_key].versions.last)
        for one in offered
        if one.api_key in messages
    }


def ask(connection: socket.socket, request: object, versions: Mapping[int, int]) -> Any:
    """The answer, in the version named for this API. WireError when it makes no sense, OSError when none comes."""
    api_key = declaration(type(request)).number
    if api_key not in versions:
        raise WireError(f"the broker does not know {messages[api_key].name}")
    version, response = versions[api_key], messages[api_key].response
    frame = bytearray(length_bytes)
    frame += request_header(api_key, version, api_key, client_id, is_flexible(type(request), version))
    encode_into(frame, request, version)
    length_layout.pack_into(frame, 0, len(frame) - length_bytes)
    connection.sendall(frame)
    (length,) = length_layout.unpack(_read(connection, length_bytes))
    if not 0 < length <= frame_max_bytes:
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
