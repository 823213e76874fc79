"""Checks of a client's batch against the topic's settings before it is appended: size, timestamps, record keys.

The header has the first record's timestamp and, if the producer is honest, the highest one. That is enough while the
topic leaves its timestamp limits at their defaults. Where a topic sets limits of its own every record's timestamp is
checked, and in a compacted topic every record needs a key. Such batches are opened as far as the key of each record.
This happens on the event loop, so the size of these batches is bounded; the doors let other requests run between them.
"""

from typing import Final

from tailrace.model.faults import BatchTooLarge, InvalidBatch, InvalidTimestamp
from tailrace.model.limits import ADMITTED_OPEN_MAX_BYTES, ADMITTED_OPEN_MAX_RECORDS
from tailrace.model.settings import NEVER_MS
from tailrace.model.topics import TOPIC_SETTINGS, TopicSettings, is_compacted
from tailrace.records.header import LOG_APPEND_TIME_BIT, BatchHeader
from tailrace.records.opened import walk_heads
from tailrace.records.record import NO_TIMESTAMP

AFTER_UNOPENED_MS: Final = (TOPIC_SETTINGS["message.timestamp.after.max.ms"].default, NEVER_MS)


def check_limits(settings: TopicSettings, size: int, header: BatchHeader, now_ms: int, *, append_time: bool) -> None:
    """Check size and header. `append_time`: the topic uses LogAppendTime, so the producer's timestamps are ignored."""
    if size > settings.max_message_bytes:
        raise BatchTooLarge(
            f"the record batch has {size} bytes, which exceeds max.message.bytes={settings.max_message_bytes}"
        )
    if header.attributes & LOG_APPEND_TIME_BIT:
        raise InvalidTimestamp("the batch has the timestamp type LogAppendTime, which only a broker may set")
    if not append_time and header.max_timestamp > now_ms + settings.message_timestamp_after_max_ms:
        raise _too_new(header.max_timestamp, now_ms + settings.message_timestamp_after_max_ms)


def looks_at_records(settings: TopicSettings) -> bool:
    """Whether batches must pass `check_records`, too; for most topics no batch is opened."""
    return _limits_times(settings) or is_compacted(settings.cleanup_policy)


def _limits_times(settings: TopicSettings) -> bool:
    limited = settings.message_timestamp_after_max_ms not in AFTER_UNOPENED_MS
    limited = limited or settings.message_timestamp_before_max_ms != NEVER_MS
    return limited and settings.message_timestamp_type == "CreateTime"


def check_records(settings: TopicSettings, batch: memoryview, header: BatchHeader, now_ms: int) -> None:
    """Check each record of the batch."""
    if header.records > ADMITTED_OPEN_MAX_RECORDS:
        raise BatchTooLarge(
            f"the batch has {header.records} records; this topic's settings require a check of each record, "
            f"for which at most {ADMITTED_OPEN_MAX_RECORDS} are accepted: send smaller batches"
        )
    timed, keyed = _limits_times(settings), is_compacted(settings.cleanup_policy)
    latest = now_ms + settings.message_timestamp_after_max_ms
    earliest = now_ms - settings.message_timestamp_before_max_ms
    for timestamp, has_key in walk_heads(batch, max(ADMITTED_OPEN_MAX_BYTES, len(batch))):
        if timed:
            _check_time(timestamp, earliest, latest)
        if keyed and not has_key:
            raise InvalidBatch("Compacted topic cannot accept message without key: give every record a key")


def _check_time(timestamp: int, earliest: int, latest: int) -> None:
    """A record without a timestamp passes."""
    if timestamp > latest:
        raise _too_new(timestamp, latest)
    if timestamp < earliest and timestamp != NO_TIMESTAMP:
        raise InvalidTimestamp(
            f"timestamp {timestamp} is out of range: message.timestamp.before.max.ms allows {earliest} or later"
        )


def _too_new(timestamp: int, latest: int) -> InvalidTimestamp:
    return InvalidTimestamp(
        f"timestamp {timestamp} is out of range: message.timestamp.after.max.ms allows {latest} or earlier"
    )
