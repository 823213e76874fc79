"""Bytes in, requests out: cuts what a client sends into requests, in bounded memory. No I/O.

A payload that may not be kept is skipped as it arrives, and the request behind it is found: so an error leaves the
connection usable. It may not be kept if it is longer than a message may be (EMSGSIZE), if its method takes no payload,
or if the server has no room for it (EAGAIN, decided by `drop_payload` while it arrives). A request whose payload is too
long is passed on at once, with what it says that follows still to be skipped: its client may have lied.
"""

from typing import Final, NamedTuple

from tailrace.doors.dmqp.codec import HEADER_BYTES, Codec, Header, Method, Status
from tailrace.model.limits import DMQP_PAYLOAD_MAX_BYTES

NO_PAYLOAD: Final = b""


class Request(NamedTuple):
    method: int
    topic_id: int
    payload: bytes
    refusal: Status | None  # set: the request is answered with this status, and nothing else happens


class RequestReader:
    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self._head = bytearray()  # of a header that has not arrived whole
        self._current: Header | None = None  # the request whose payload arrives
        self._payload = bytearray()  # what has arrived of it
        self._skipping = 0  # bytes to pass over before the next header

    @property
    def is_between_requests(self) -> bool:
        return self._current is None and not self._skipping and not self._head

    @property
    def held_bytes(self) -> int:
        """Of a payload that has not arrived whole."""
        return len(self._payload)

    def feed(self, data: memoryview, requests_max: int) -> tuple[list[Request], int]:
        """The requests that are complete, at most so many, and how many bytes were used up.

        Fewer bytes than there are only if the number of requests was reached. The rest is to be fed again.
        """
        requests: list[Request] = []
        at, end = 0, len(data)
        while at < end and len(requests) < requests_max:
            if self._skipping:
                step = min(self._skipping, end - at)
                self._skipping -= step
                at += step
            elif self._current is not None:
                at = self._take_payload(data, at, requests)
            elif self._head or end - at < HEADER_BYTES:
                step = min(HEADER_BYTES - len(self._head), end - at)
                self._head += data[at : at + step]
                at += step
                if len(self._head) == HEADER_BYTES:
                    header = self._codec.header(self._head)
                    self._head.clear()
                    self._begin(header, requests)
            else:
                header = self._codec.header(data, at)
                at += HEADER_BYTES
                if header.method == Method.PUSH and header.length <= min(DMQP_PAYLOAD_MAX_BYTES, end - at):
                    payload = bytes(data[at : at + header.length])  # the whole request is here, as is most often so
                    at += header.length
                    requests.append(Request(Method.PUSH, header.topic_id, payload, None))
                else:
                    self._begin(header, requests)
        return requests, at

    def drop_payload(self) -> Request | None:
        """Keep nothing of the payload that arrives, and skip the rest; its request, to be answered with EAGAIN."""
        header = self._current
        if header is None:
            return None
        self._skipping = header.length - len(self._payload)
        self._current, self._payload = None, bytearray()
        return Request(header.method, header.topic_id, NO_PAYLOAD, Status.EAGAIN)

    def _begin(self, header: Header, requests: list[Request]) -> None:
        method, topic_id = header.method, header.topic_id
        refusal = refusal_of(header)
        if refusal is None and method == Method.PUSH and header.length:
            self._current = header
        else:
            self._skipping = header.length
            requests.append(Request(method, topic_id, NO_PAYLOAD, refusal))

    def _take_payload(self, data: memoryview, at: int, requests: list[Request]) -> int:
        assert self._current is not None
        header = self._current
        chunk = data[at : at + header.length - len(self._payload)]
        self._payload += chunk
        if len(self._payload) == header.length:
            requests.append(Request(header.method, header.topic_id, bytes(self._payload), None))
            self._current, self._payload = None, bytearray()
        return at + len(chunk)


def refusal_of(header: Header) -> Status | None:
    """Why a request is refused by its header alone; None if it is not."""
    if header.method == Method.RESPONSE:
        return Status.EPROTO
    if header.method > Method.PEEK_TIMESTAMP:
        return Status.ENOSYS
    return Status.EMSGSIZE if header.length > DMQP_PAYLOAD_MAX_BYTES else None
