"""The Kafka requests of the load, encoded by hand, and the response fields that it reads.

Produce is sent in version 9 and Fetch in version 12: old enough to address topics by name, new enough to be flexible.
Requests that only prepare a run use simpler versions, from before the flexible encoding. Kafka 4.3 supports all of
them. Topic names are short, so a compact length is always one byte.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from tailrace.records.header import LAYOUT, PREFIX, PREFIX_BYTES
from tailrace.records.varints import unsigned_varint

SIZE_BYTES: Final = 4
CORRELATION_AT: Final = 8  # from the start of the frame, including its size
PRODUCE_TIMEOUT_MS: Final = 30_000
ABORTED_BYTES: Final = 8 + 8 + 1  # of an aborted transaction in a Fetch response: producer id, first offset, no tags
ENDS_TOLD_BYTES: Final = 4 + 2 + 8 + 8  # of a partition in a ListOffsets response
CLIENT: Final = struct.pack(">h", 5) + b"bench"
REQUEST_HEAD_BYTES: Final = 2 + 2 + 4 + len(CLIENT) + 1  # of a flexible request


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def compact_text(value: str) -> bytes:
    return compact_length(len(value)) + value.encode()


def compact_length(length: int) -> bytes:
    """A length in the flexible encoding: a varint of the length plus one."""
    return unsigned_varint(length + 1)


def frame(api: int, version: int, body: bytes, *, flexible: bool = False, correlation: int = 0) -> bytes:
    head = struct.pack(">hhi", api, version, correlation) + CLIENT + (b"\0" if flexible else b"")
    return struct.pack(">i", len(head) + len(body)) + head + body


def produce(topic: str, batch: bytes | bytearray, *, acks: int, correlation: int = 0) -> bytes:
    body = b"".join(
        (
            b"\0" + struct.pack(">hi", acks, PRODUCE_TIMEOUT_MS),
            b"\2" + compact_text(topic) + b"\2" + struct.pack(">i", 0),
            compact_length(len(batch)) + batch,
            b"\0\0\0",
        )
    )
    return frame(0, 9, body, flexible=True, correlation=correlation)


def produce_error_at(topic: str) -> int:
    """The position, in a Produce response without its size, of the error code of the only partition."""
    return 4 + 1 + 1 + len(compact_text(topic)) + 1 + 4


def produce_partition_at(topic: str) -> int:
    """The position of the partition in a Produce request, from the start of the frame."""
    return SIZE_BYTES + REQUEST_HEAD_BYTES + 1 + 2 + 4 + 1 + len(compact_text(topic)) + 1


class FetchRequest:
    """A Fetch of one partition; the offset is patched in place for each request."""

    def __init__(self, topic: str, *, max_bytes: int, max_wait_ms: int, committed: bool = False) -> None:
        before = struct.pack(">iiiibii", -1, max_wait_ms, 1, max_bytes, committed, 0, -1) + b"\2" + compact_text(topic)
        before += b"\2" + struct.pack(">ii", 0, -1)
        after = struct.pack(">iqi", -1, -1, max_bytes) + b"\0\0\1\1\0"
        self._frame = bytearray(frame(1, 12, before + bytes(8) + after, flexible=True))
        self._offset_at = len(self._frame) - len(after) - 8

    def at(self, offset: int) -> bytearray:
        struct.pack_into(">q", self._frame, self._offset_at, offset)
        return self._frame


class Fetched(NamedTuple):
    error: int
    records: memoryview
    aborted: int = 0  # aborted transactions that a read-committed consumer has to skip


def read_fetched(answer: memoryview, topic: str) -> Fetched:
    """Error code and records of the only partition; `answer` starts after its size."""
    error = struct.unpack_from(">h", answer, 9)[0]
    if error:
        return Fetched(error, answer[:0])
    at = 15 + 1 + len(compact_text(topic)) + 1
    error = struct.unpack_from(">h", answer, at + 4)[0]
    at += 4 + 2 + 8 + 8 + 8
    aborted, at = read_length(answer, at)
    aborted = max(aborted, 0)  # null for read-uncommitted requests
    at += aborted * ABORTED_BYTES
    length, at = read_length(answer, at + 4)
    return Fetched(error, answer[at : at + max(length, 0)], aborted)


def read_length(data: memoryview, at: int) -> tuple[int, int]:
    """A compact length (-1 for null), and the position of the next field."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value - 1, at


def next_offsets(records: memoryview) -> Iterator[int]:
    """The offset after each complete batch; a truncated last batch is skipped."""
    at = 0
    while at + LAYOUT.size <= len(records):
        base, length = PREFIX.unpack_from(records, at)
        at += PREFIX_BYTES + length
        if at <= len(records):
            yield base + struct.unpack_from(">i", records, at - length + 11)[0] + 1


def api_versions() -> bytes:
    return frame(18, 0, b"")


def create_topic(topic: str) -> bytes:
    return frame(19, 4, struct.pack(">i", 1) + text(topic) + struct.pack(">ihiiib", 1, 1, 0, 0, PRODUCE_TIMEOUT_MS, 0))


def delete_topic(topic: str) -> bytes:
    return frame(20, 3, struct.pack(">i", 1) + text(topic) + struct.pack(">i", PRODUCE_TIMEOUT_MS))


def init_producer() -> bytes:
    return frame(22, 1, struct.pack(">hi", -1, 60_000))


def end_offset(topic: str, *, committed: bool = False) -> bytes:
    """The high watermark, or the last stable offset."""
    return end_offsets(topic, [0], committed=committed)


def end_offsets(topic: str, partitions: Sequence[int], *, committed: bool = False) -> bytes:
    latest = -1
    asked = b"".join(struct.pack(">iq", partition, latest) for partition in partitions)
    topics = text(topic) + struct.pack(">i", len(partitions)) + asked
    return frame(2, 2, struct.pack(">ibi", -1, committed, 1) + topics)


def ends_told(answer: memoryview, topic: str) -> dict[int, tuple[int, int]]:
    """The error code and the end offset of each partition."""
    at = 4 + 4 + 4 + len(text(topic))
    count = struct.unpack_from(">i", answer, at)[0]
    told = struct.iter_unpack(">ihqq", answer[at + 4 : at + 4 + count * ENDS_TOLD_BYTES])
    return {partition: (error, offset) for partition, error, _, offset in told}
