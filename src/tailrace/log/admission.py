"""What a topic's settings say about a batch before it is appended: its size, its times, and that records have keys.

A header tells the first record's time and, if it is honest, the highest. That is enough where a topic leaves times at
their defaults. Where it limits them itself every record counts, and so it does where the topic is compacted: there a
record needs a key. Such batches are opened, up to the key of each record: on the loop, so within bounds. Doors
see to it that others are served between one such batch and the next.
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
    """Whether a client's batch may be appended; `append_time`: the topic stamps its own times, so any will do."""
    if size > settings.max_message_bytes:
        raise BatchTooLarge(f"the batch has {size} bytes, max.message.bytes is {settings.max_message_bytes}")
    if header.attributes & LOG_APPEND_TIME_BIT:
        raise InvalidTimestamp("the batch says that its times are the broker's own; only a broker may say so")
    if not append_time and header.max_timestamp > now_ms + settings.message_timestamp_after_max_ms:
        raise _ahead(header.max_timestamp, now_ms + settings.message_timestamp_after_max_ms)


def looks_at_records(settings: TopicSettings) -> bool:
    """Whether batches must pass `check_records`, too: most topics never open one."""
    return _limits_times(settings) or is_compacted(settings.cleanup_policy)


def _limits_times(settings: TopicSettings) -> bool:
    limited = settings.message_timestamp_after_max_ms not in AFTER_UNOPENED_MS
    limited = limited or settings.message_timestamp_before_max_ms != NEVER_MS
    return limited and settings.message_timestamp_type == "CreateTime"


def check_records(settings: TopicSettings, batch: memoryview, header: BatchHeader, now_ms: int) -> None:
    """Whether each of its records may be appended."""
    if header.records > ADMITTED_OPEN_MAX_RECORDS:
        raise BatchTooLarge(
            f"the batch has {header.records} records; to look at each, as this topic's settings ask, "
            f"at most {ADMITTED_OPEN_MAX_RECORDS} are taken: send smaller batches"
        )
    timed, keyed = _limits_times(settings), is_compacted(settings.cleanup_policy)
    late = now_ms + settings.message_timestamp_after_max_ms
    early = now_ms - settings.message_timestamp_before_max_ms
    for timestamp, has_key in walk_heads(batch, max(ADMITTED_OPEN_MAX_BYTES, len(batch))):
        if timed:
            _check_time(timestamp, early, late)
        if keyed and not has_key:
            raise InvalidBatch("a record has no key, and the topic is compacted, by key: give it one")


def _check_time(timestamp: int, early: int, late: int) -> None:
    """A record that has no time is in time."""
    if timestamp > late:
        raise _ahead(timestamp, late)
    if timestamp < early and timestamp != NO_TIMESTAMP:
        raise InvalidTimestamp(f"timestamp {timestamp} lies too far back; at least {early} is allowed now")


def _ahead(timestamp: int, late: int) -> InvalidTimestamp:
    return InvalidTimestamp(f"timestamp {timestamp} lies too far ahead; at most {late} is allowed now")
