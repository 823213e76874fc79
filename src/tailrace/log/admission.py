"""Checks of a client's batch against the topic's settings before it is appended: size, timestamps, record keys.

The header has the first record's timestamp and, if the producer is honest, the highest one. That is enough while the
topic leaves its timestamp limits at their defaults. Where a topic sets limits of its own every record's timestamp is
checked, and in a compacted topic every record needs a key. Such batches are opened as far as the key of each record.
This happens on the event loop, so the size of these batches is bounded; the doors let other requests run between them.

A rejection because of single records names them (KIP-467). A batch whose header shows a timestamp that is too new is
rejected in any topic, and opened only then, to find the records.

A topic may store batches in a codec of its own (`compression.type`). A batch in another one is not appended: its caller
compresses it anew off the event loop, which takes milliseconds, and appends the result, which passes all checks again.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final, cast

from tailrace.model.faults import BatchTooLarge, Fault, InvalidBatch, InvalidTimestamp, RejectedRecord
from tailrace.model.frozen import frozen
from tailrace.model.limits import (
    ADMITTED_OPEN_MAX_BYTES,
    ADMITTED_OPEN_MAX_RECORDS,
    RECOMPRESSED_MAX_BYTES,
    REJECTED_RECORDS_NAMED_MAX,
)
from tailrace.model.settings import NEVER_MS
from tailrace.model.topics import TOPIC_SETTINGS, TopicSettings, is_compacted
from tailrace.records.compress import COMPRESSIONS, Compression
from tailrace.records.header import LOG_APPEND_TIME_BIT, BatchHeader
from tailrace.records.opened import decompressed, walk_heads
from tailrace.records.recompress import Recompressed, recompress
from tailrace.records.record import NO_TIMESTAMP

NO_KEY: Final = "Compacted topic cannot accept message without key"
AFTER_UNOPENED_MS: Final = (TOPIC_SETTINGS["message.timestamp.after.max.ms"].default, NEVER_MS)


def check_limits(
    settings: TopicSettings, batch: memoryview, header: BatchHeader, now_ms: int, *, append_time: bool
) -> None:
    """Check size and header. `append_time`: the topic uses LogAppendTime, so the producer's timestamps are ignored."""
    if len(batch) > settings.max_message_bytes:
        raise BatchTooLarge(
            f"the record batch has {len(batch)} bytes, which exceeds max.message.bytes={settings.max_message_bytes}"
        )
    if header.attributes & LOG_APPEND_TIME_BIT:
        raise InvalidTimestamp("the batch has the timestamp type LogAppendTime, which only a broker may set")
    if not append_time and header.max_timestamp > now_ms + settings.message_timestamp_after_max_ms:
        raise _too_new(settings, batch, header, now_ms)


def looks_at_records(settings: TopicSettings) -> bool:
    """Whether batches must pass `check_records`, too; for most topics no batch is opened."""
    return _limits_times(settings) or is_compacted(settings.cleanup_policy)


@frozen
class StoredCodec:
    """The codec in which a topic stores the batches of clients."""

    name: Compression
    id: int  # in the attributes of a batch
    level: int | None  # as in `compression.*.level`
    max_bytes: int  # of the decompressed records, unless the batch itself is larger

    def recompression(self, batch: memoryview) -> Callable[[], Recompressed]:
        """The work, for a thread."""
        return partial(recompress, batch, self.name, self.level, max(self.max_bytes, len(batch)))


class NeedsRecompression(Exception):
    """The batch may be appended, but not in the codec that it has."""

    def __init__(self, codec: StoredCodec) -> None:
        super().__init__(codec)
        self.codec = codec


def stored_codec(settings: TopicSettings) -> StoredCodec | None:
    """None: batches are stored in the codec of their producer."""
    if settings.compression_type == "producer":
        return None
    if settings.compression_type == "uncompressed":
        return StoredCodec(name="none", id=0, level=None, max_bytes=settings.max_message_bytes)
    levels = {
        "gzip": settings.compression_gzip_level,
        "lz4": settings.compression_lz4_level,
        "zstd": settings.compression_zstd_level,
    }
    id = COMPRESSIONS.index(cast(Compression, settings.compression_type))
    name = COMPRESSIONS[id]
    return StoredCodec(name=name, id=id, level=levels.get(name), max_bytes=RECOMPRESSED_MAX_BYTES)


def _limits_times(settings: TopicSettings) -> bool:
    limited = settings.message_timestamp_after_max_ms not in AFTER_UNOPENED_MS
    limited = limited or settings.message_timestamp_before_max_ms != NEVER_MS
    return limited and settings.message_timestamp_type == "CreateTime"


def check_records(
    settings: TopicSettings, batch: memoryview, header: BatchHeader, now_ms: int, body: bytes | None = None
) -> None:
    """Check each record of the batch. `body`: its decompressed records, if the caller has them."""
    if header.records > ADMITTED_OPEN_MAX_RECORDS:
        raise BatchTooLarge(
            f"the batch has {header.records} records; this topic's settings require a check of each record, "
            f"for which at most {ADMITTED_OPEN_MAX_RECORDS} are accepted: send smaller batches"
        )
    if body is None:
        body = _body(batch)
    if (rejection := _rejection(settings, header, body, now_ms)) is not None:
        raise rejection


def _body(batch: memoryview) -> bytes:
    return decompressed(batch, max(ADMITTED_OPEN_MAX_BYTES, len(batch)))[1]


def _rejection(
    settings: TopicSettings, header: BatchHeader, body: bytes, now_ms: int
) -> InvalidBatch | InvalidTimestamp | None:
    """The fault that names the records which the topic does not allow; None: it allows all of them.

    As in Kafka, the error is about timestamps if that of any record is wrong. A record without a timestamp passes."""
    timed, keyed = settings.message_timestamp_type == "CreateTime", is_compacted(settings.cleanup_policy)
    latest = now_ms + settings.message_timestamp_after_max_ms
    earliest = now_ms - settings.message_timestamp_before_max_ms
    rejected: list[RejectedRecord] = []
    count, any_time = 0, False
    for position, (timestamp, has_key) in enumerate(walk_heads(header, body)):
        if keyed and not has_key:
            reason = NO_KEY
        elif timed and timestamp > latest:
            reason, any_time = _after(timestamp, latest), True
        elif timed and timestamp < earliest and timestamp != NO_TIMESTAMP:
            reason, any_time = _before(timestamp, earliest), True
        else:
            continue
        count += 1
        if count <= REJECTED_RECORDS_NAMED_MAX:
            rejected.append(RejectedRecord(position, reason))
    if not rejected:
        return None
    position, reason = rejected[0]
    cause = "invalid timestamp" if any_time else "missing key"
    message = (
        f"One or more records have been rejected due to {cause}: {count} in total, first record {position}: {reason}"
    )
    return (InvalidTimestamp if any_time else InvalidBatch)(message, tuple(rejected))


def _too_new(settings: TopicSettings, batch: memoryview, header: BatchHeader, now_ms: int) -> Fault:
    """The rejection of a batch because of its header; it names records if the batch can be opened."""
    rejection: Fault | None = None
    if header.records <= ADMITTED_OPEN_MAX_RECORDS:
        with suppress(Fault):
            rejection = _rejection(settings, header, _body(batch), now_ms)
    latest = now_ms + settings.message_timestamp_after_max_ms
    return rejection or InvalidTimestamp(_after(header.max_timestamp, latest))


def _after(timestamp: int, latest: int) -> str:
    return f"timestamp {timestamp} is out of range: message.timestamp.after.max.ms allows {latest} or earlier"


def _before(timestamp: int, earliest: int) -> str:
    return f"timestamp {timestamp} is out of range: message.timestamp.before.max.ms allows {earliest} or later"
