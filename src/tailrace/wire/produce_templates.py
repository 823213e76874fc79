"""Produce templates: a fast path for a Produce request that repeats the previous one of its connection.

Most clients send one batch per request, to the same topic as before. All bytes between the correlation id and the
partition number, the client id among them, are then the same as in the previous request, and the response differs only
in a few numbers. A template keeps those bytes: a request that matches them is not parsed again, and its response is one
`pack`. Any other request is parsed in full. There is no template for a request whose bytes before the batch are too
many to keep (a client id of kilobytes, tagged fields).
"""

import struct
from typing import Final

from tailrace.model.limits import PRODUCE_TEMPLATE_MAX_BYTES
from tailrace.wire.hot_produce import FIRST_FLEXIBLE, ProduceHead
from tailrace.wire.primitives import read_uvarint, uvarint

_CONSTANT_FROM: Final = 8  # the constant bytes begin after API key, version and correlation id
_NO_TAGS: Final = memoryview(b"\0\0\0")  # of the partition, the topic and the request
_NO_ERRORS: Final = b"\1\0\0\0\0\0\0\0\0"  # no record errors, no message, tags; tags of the topic; throttle time, tags


class ProduceTemplate:
    __slots__ = (
        "_constant",
        "_layout",
        "_length_at",
        "_response",
        "_response_bytes",
        "_start",
        "_topic_bytes",
        "acks",
        "client_id",
        "timeout_ms",
        "topic",
        "version",
    )

    def __init__(self, frame: memoryview, length_at: int, version: int, client_id: str | None, head: ProduceHead):
        self.acks, self.timeout_ms, self.topic = head.acks, head.timeout_ms, head.topics[0].topic
        self.version, self.client_id = version, client_id
        self._length_at = length_at
        self._layout = struct.Struct(f">4si{length_at - 4 - _CONSTANT_FROM}si")
        self._start, _, self._constant, _ = self._layout.unpack_from(frame)
        name = self.topic.encode() if isinstance(self.topic, str) else self.topic
        self._topic_bytes = name if name is self.topic else uvarint(len(name) + 1) + name
        self._response = struct.Struct(f">iiBB{len(self._topic_bytes)}sBihqqq{len(_NO_ERRORS)}s")
        self._response_bytes = self._response.size - 4

    def read(self, frame: memoryview) -> tuple[int, int, memoryview] | None:
        """Correlation id, partition and batch of a request that matches the template; None if it does not match."""
        at, end = self._length_at, len(frame) - len(_NO_TAGS)
        if end <= at:
            return None
        start, correlation_id, constant, partition = self._layout.unpack_from(frame)
        if constant != self._constant or start != self._start:
            return None
        size = frame[at]
        if size < 128:
            at += 1
        elif (more := frame[at + 1]) < 128:
            size, at = size & 127 | more << 7, at + 2
        else:
            try:
                size, at = read_uvarint(frame, at)
            except IndexError:
                return None
        if size < 2 or at + size - 1 != end or frame[end:] != _NO_TAGS:
            return None
        return correlation_id, partition, frame[at:end]

    def answer(self, correlation_id: int, partition: int, base_offset: int, time_ms: int, log_start: int) -> bytes:
        """The whole response: the batch was appended."""
        return self._response.pack(
            self._response_bytes,
            correlation_id,
            0,  # no tags
            2,  # one topic
            self._topic_bytes,
            2,  # one partition
            partition,
            0,  # no error
            base_offset,
            time_ms,
            log_start,
            _NO_ERRORS,
        )


def produce_template(
    frame: memoryview, version: int, client_id: str | None, head: ProduceHead
) -> ProduceTemplate | None:
    """The template of a parsed request; None unless it is one batch, without a transaction, with acks 1 or all."""
    if version < FIRST_FLEXIBLE or head.transactional_id is not None or head.acks not in (1, -1):
        return None
    if len(head.topics) != 1 or len(head.topics[0].partitions) != 1:
        return None
    records = head.topics[0].partitions[0].records
    if records is None or frame[-len(_NO_TAGS) :] != _NO_TAGS:
        return None
    length = uvarint(len(records) + 1)
    length_at = len(frame) - len(_NO_TAGS) - len(records) - len(length)
    if length_at > PRODUCE_TEMPLATE_MAX_BYTES or frame[length_at : length_at + len(length)] != length:
        return None
    return ProduceTemplate(frame, length_at, version, client_id, head)
