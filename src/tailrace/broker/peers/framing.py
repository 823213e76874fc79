"""Requests and answers between peers as frames, in Kafka's framing: length, header, body."""

from types import MappingProxyType
from typing import Any, Final

from tailrace.ports.disk import Buffer
from tailrace.wire.compile import decode_whole, encode_into
from tailrace.wire.framing import LENGTH_BYTES, LENGTH_LAYOUT
from tailrace.wire.headers import read_response_header, request_header, response_header
from tailrace.wire.messages import MESSAGES
from tailrace.wire.messages.fetch import FetchRequest
from tailrace.wire.messages.peers import PEER_MESSAGES, RAFT_MESSAGES_KEY
from tailrace.wire.schema import Versions, declaration

FETCH_KEY: Final = declaration(FetchRequest).number
FETCH_VERSIONS: Final = Versions(18, 18)  # the first version that carries all fields a leader needs from its followers
FLEXIBLE_SINCE: Final = MappingProxyType(
    {**dict.fromkeys(PEER_MESSAGES, 0), RAFT_MESSAGES_KEY: 0, FETCH_KEY: MESSAGES[FETCH_KEY].flexible.first}
)
_RAFT_HEADER: Final = bytes(LENGTH_BYTES) + request_header(RAFT_MESSAGES_KEY, 0, 0, None, flexible=True)


def request_frame(request: object, version: int, correlation_id: int) -> bytearray:
    """A declared request, in a version that the peer understands."""
    frame = bytearray(LENGTH_BYTES)
    frame += request_header(declaration(type(request)).number, version, correlation_id, None, flexible=True)
    encode_into(frame, request, version)
    return _with_length(frame)


def answer_frame(answer: object, version: int, correlation_id: int) -> bytearray:
    frame = bytearray(LENGTH_BYTES)
    frame += response_header(declaration(type(answer)).number, correlation_id, flexible=True)
    encode_into(frame, answer, version)
    return _with_length(frame)


def read_answer(frame: Buffer, answer: type, version: int) -> tuple[int, Any]:
    """The correlation id and the answer to a request sent in `version`; WireError if the frame is not one."""
    correlation_id, at = read_response_header(frame, 0, declaration(answer).number, flexible=True)
    return correlation_id, decode_whole(answer, version, frame, at)


def raft_frame_head(body: Buffer) -> bytearray:
    """Length and header of a frame of packed Raft messages."""
    head = bytearray(_RAFT_HEADER)
    LENGTH_LAYOUT.pack_into(head, 0, len(head) + len(body) - LENGTH_BYTES)
    return head


def _with_length(frame: bytearray) -> bytearray:
    LENGTH_LAYOUT.pack_into(frame, 0, len(frame) - LENGTH_BYTES)
    return frame
