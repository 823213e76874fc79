"""What one connection's Produce requests have in common, and their answers.

Most clients send one batch to the same topic as the last time. Then all bytes between the correlation id and the
partition's number are the same, the client's name among them, as is all of the answer but a few numbers: neither is
taken apart, or put together, again. Whatever differs in any other byte is read in full, as is a request that says so
much before its batch that keeping it would cost memory (a name of kilobytes, tagged fields).
"""

import struct
from typing import Final

from tailrace.model.limits import PRODUCE_TEMPLATE_MAX_BYTES
from tailrace.wire.hot_produce import FIRST_FLEXIBLE, ProduceHead
from tailrace.wire.primitives import read_uvarint, uvarint

_SAME_FROM: Final = 8  # API key, version and correlation id come before
_NO_TAGS: Final = memoryview(b"\0\0\0")  # of the partition, the topic and the request
_NO_BLAME: Final = b"\1\0\0\0\0\0\0\0\0"  # no records to blame, no message, tags; tags; throttle time, tags


class Alike:
    __slots__ = (
        "_answer",
        "_answer_bytes",
        "_layout",
        "_length_at",
        "_named",
        "_same",
        "_start",
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
        self._layout = struct.Struct(f">4si{length_at - 4 - _SAME_FROM}si")
        self._start, _, self._same, _ = self._layout.unpack_from(frame)
        name = self.topic.encode() if isinstance(self.topic, str) else self.topic
        self._named = name if name is self.topic else uvarint(len(name) + 1) + name
        self._answer = struct.Struct(f">iiBB{len(self._named)}sBihqqq{len(_NO_BLAME)}s")
        self._answer_bytes = self._answer.size - 4

    def read(self, frame: memoryview) -> tuple[int, int, memoryview] | None:
        """Correlation id, partition and batch of a request that differs in nothing else; None: it does, or has none."""
        at, end = self._length_at, len(frame) - len(_NO_TAGS)
        if end <= at:
            return None
        start, correlation_id, same, partition = self._layout.unpack_from(frame)
        if same != self._same or start != self._start:
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
        """The whole answer: the batch was appended."""
        return self._answer.pack(
            self._answer_bytes,
            correlation_id,
            0,  # no tags
            2,  # one topic
            self._named,
            2,  # one partition
            partition,
            0,  # no error
            base_offset,
            time_ms,
            log_start,
            _NO_BLAME,
        )


def alike(frame: memoryview, version: int, client_id: str | None, head: ProduceHead) -> Alike | None:
    """What the next request may have in common with this one; None where that is not the usual."""
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
    return Alike(frame, length_at, version, client_id, head)
