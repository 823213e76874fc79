"""Hand-written codec of Produce, the most frequent request: read into tuples, answered by packing structs.

The declaration in `wire/messages/produce.py` is the reference; tests compare the two byte by byte in every version.
Record batches stay slices of the frame. Reading truncated input raises `struct.error` or `IndexError`, which becomes
one `WireError`.
"""

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from tailrace.model.ids import Id
from tailrace.model.limits import PARTITIONS_PER_REQUEST_MAX
from tailrace.wire.hot import INT16, INT32, Endpoint, bounded, compact_string, endpoints_tags, slice_of, string
from tailrace.wire.primitives import WireError, read_long_uvarint, read_uvarint, skip_tags, uvarint

FIRST_WITH_RECORD_ERRORS: Final = 8
FIRST_FLEXIBLE: Final = 9
FIRST_WITH_HINTS: Final = 10
FIRST_BY_TOPIC_ID: Final = 13

_ACKS_TIMEOUT_COUNT: Final = struct.Struct(">hii")
_ACKS_TIMEOUT: Final = struct.Struct(">hi")
_PARTITION_AND_SIZE: Final = struct.Struct(">iB")
_INDEX_SIZE: Final = struct.Struct(">ii")


class PartitionData(NamedTuple):
    partition: int
    records: memoryview | None  # a writable slice of the frame, valid as long as the frame is


class TopicData(NamedTuple):
    topic: str | Id  # the topic's name, from version 13 its id
    partitions: list[PartitionData]


class ProduceHead(NamedTuple):
    transactional_id: str | None
    acks: int
    timeout_ms: int
    topics: list[TopicData]


class PartitionAnswer(NamedTuple):
    partition: int
    error: int
    base_offset: int = -1
    append_time_ms: int = -1
    log_start: int = -1
    message: str | None = None
    leader: int = -1  # with NOT_LEADER_OR_FOLLOWER: hint at the leader and its epoch, from version 10 (KIP-951)
    leader_epoch: int = -1
    record_errors: Sequence[tuple[int, str]] = ()  # records because of which the batch is rejected, from version 8


def read_produce(frame: memoryview, at: int, version: int) -> ProduceHead:
    """The request body at `at`, in versions 3 to 13."""
    try:
        if version >= FIRST_FLEXIBLE:
            return _read_flexible(frame, at, by_id=version >= FIRST_BY_TOPIC_ID)
        return _read_old(frame, at)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise WireError(f"Produce version {version} is truncated or malformed: {error}") from None


def _read_old(frame: memoryview, at: int) -> ProduceHead:
    transactional_id, at = string(frame, at)
    acks, timeout_ms, topic_count = _ACKS_TIMEOUT_COUNT.unpack_from(frame, at)
    at += _ACKS_TIMEOUT_COUNT.size
    left = PARTITIONS_PER_REQUEST_MAX
    topics = []
    for _ in range(bounded(topic_count, frame, at)):
        name, at = string(frame, at)
        if name is None:
            raise WireError("a topic in the Produce request has no name")
        (count,) = INT32.unpack_from(frame, at)
        at += 4
        partition_count = bounded(count, frame, at)
        left = _partitions_left(left, partition_count)
        partitions = []
        for _ in range(partition_count):
            index, size = _INDEX_SIZE.unpack_from(frame, at)
            at += 8
            records, at = slice_of(frame, at, size)
            partitions.append(PartitionData(index, records))
        topics.append(TopicData(name, partitions))
    return ProduceHead(transactional_id, acks, timeout_ms, topics)


def _read_flexible(frame: memoryview, at: int, *, by_id: bool) -> ProduceHead:
    # Lengths of one byte and empty tagged fields are by far the most common: they are read inline, others by functions.
    end = len(frame)
    transactional_id = None
    if frame[at]:
        transactional_id, at = compact_string(frame, at)
    else:
        at += 1
    acks, timeout_ms = _ACKS_TIMEOUT.unpack_from(frame, at)
    topic_count, at = _count(frame, at + _ACKS_TIMEOUT.size)
    left = PARTITIONS_PER_REQUEST_MAX
    topics = []
    for _ in range(topic_count):
        topic: str | Id | None
        if by_id:
            topic, at = Id(bytes(frame[at : at + 16])), at + 16
        else:
            topic, at = compact_string(frame, at)
        if topic is None:
            raise WireError("a topic in the Produce request has no name")
        partition_count, at = _count(frame, at)
        left = _partitions_left(left, partition_count)
        partitions = []
        for _ in range(partition_count):
            partition, size = _PARTITION_AND_SIZE.unpack_from(frame, at)
            at += _PARTITION_AND_SIZE.size
            if size > 127:
                size, at = read_long_uvarint(size, frame, at)
            records = None
            if size:
                if at + size - 1 > end:
                    raise IndexError(f"records of {size - 1} bytes at byte {at}, {end - at} are left")
                records = frame[at : at + size - 1]
                at += size - 1
            at = skip_tags(frame, at, end) if frame[at] else at + 1
            partitions.append(PartitionData(partition, records))
        at = skip_tags(frame, at, end) if frame[at] else at + 1
        topics.append(TopicData(topic, partitions))
    if frame[at]:
        skip_tags(frame, at, end)
    return ProduceHead(transactional_id, acks, timeout_ms, topics)


def _count(frame: memoryview, at: int) -> tuple[int, int]:
    """The length of a compact array."""
    count = frame[at]
    if 0 < count < len(frame) - at and count <= 127:
        return count - 1, at + 1
    count, at = read_uvarint(frame, at)
    return bounded(count - 1, frame, at), at


def _partitions_left(left: int, count: int) -> int:
    """How many partitions the rest of the request may have; bounded, as each costs an object and a response entry."""
    if count > left:
        raise WireError(f"the Produce request has more than {PARTITIONS_PER_REQUEST_MAX} partitions")
    return left - count


def write_produced(
    correlation_id: int,
    version: int,
    topics: Sequence[tuple[str | Id, list[PartitionAnswer]]],
    endpoints: Sequence[Endpoint] = (),
) -> bytes:
    """The whole response with its length and header; `endpoints` are the addresses of the leaders named in `topics`."""
    body = bytearray(_HEAD_OLD.size)
    if version >= FIRST_FLEXIBLE:
        _write_flexible(body, version, topics)
        body += endpoints_tags(endpoints) if version >= FIRST_WITH_HINTS else b"\0"
    else:
        _write_old(body, version, topics)
    INT32.pack_into(body, 0, len(body) - 4)
    INT32.pack_into(body, 4, correlation_id)
    return bytes(body)


_HEAD_OLD: Final = struct.Struct(">ii")  # length, correlation id
_PARTITION_TO_4: Final = struct.Struct(">ihqq")
_PARTITION_FROM_5: Final = struct.Struct(">ihqqq")


def _write_old(body: bytearray, version: int, topics: Sequence[tuple[str | Id, list[PartitionAnswer]]]) -> None:
    body += INT32.pack(len(topics))
    for name, answers in topics:
        assert isinstance(name, str)
        raw = name.encode()
        body += INT16.pack(len(raw)) + raw + INT32.pack(len(answers))
        for answer in answers:
            index, error, base_offset, append_time_ms, log_start, message, _, _, record_errors = answer
            if version < 5:
                body += _PARTITION_TO_4.pack(index, error, base_offset, append_time_ms)
                continue
            body += _PARTITION_FROM_5.pack(index, error, base_offset, append_time_ms, log_start)
            if version < FIRST_WITH_RECORD_ERRORS:
                continue
            if message is None and not record_errors:
                body += b"\0\0\0\0\xff\xff"
            else:
                _write_old_reasons(body, message, record_errors)
    body += b"\0\0\0\0"  # throttle time


def _write_flexible(body: bytearray, version: int, topics: Sequence[tuple[str | Id, list[PartitionAnswer]]]) -> None:
    body += b"\0"  # tagged fields of the header
    body += uvarint(len(topics) + 1)
    for topic, answers in topics:
        if isinstance(topic, str):
            raw = topic.encode()
            body += uvarint(len(raw) + 1) + raw
        else:
            body += topic
        body += uvarint(len(answers) + 1)
        for index, error, base_offset, append_time_ms, log_start, message, leader, epoch, record_errors in answers:
            body += _PARTITION_FROM_5.pack(index, error, base_offset, append_time_ms, log_start)
            if message is None and not record_errors:
                body += b"\1\0"
            else:
                _write_reasons(body, message, record_errors)
            if version >= FIRST_WITH_HINTS and leader >= 0:
                body += b"\1\0\x09" + _INDEX_SIZE.pack(leader, epoch) + b"\0"  # one tagged field: tag 0, nine bytes
            else:
                body += b"\0"
        body += b"\0"
    body += b"\0\0\0\0"  # throttle time; the caller adds the tagged fields


def _write_old_reasons(body: bytearray, message: str | None, record_errors: Sequence[tuple[int, str]]) -> None:
    body += INT32.pack(len(record_errors))
    for record, reason in record_errors:
        body += INT32.pack(record) + _old_text(reason)
    body += b"\xff\xff" if message is None else _old_text(message)


def _write_reasons(body: bytearray, message: str | None, record_errors: Sequence[tuple[int, str]]) -> None:
    body += uvarint(len(record_errors) + 1)
    for record, reason in record_errors:
        body += INT32.pack(record) + _compact_text(reason) + b"\0"
    body += b"\0" if message is None else _compact_text(message)


def _compact_text(text: str) -> bytes:
    raw = text.encode()
    return uvarint(len(raw) + 1) + raw


def _old_text(text: str) -> bytes:
    raw = text.encode()
    return INT16.pack(len(raw)) + raw
