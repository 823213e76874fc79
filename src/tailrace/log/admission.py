"""What a topic's settings say about a batch before it is appended: its size, and its times."""

from tailrace.model.faults import BatchTooLarge, InvalidTimestamp
from tailrace.model.topics import TopicSettings
from tailrace.records.header import BatchHeader, log_append_time_bit


def check_limits(settings: TopicSettings, size: int, header: BatchHeader, now_ms: int, *, append_time: bool) -> None:
    """Whether a client's batch may be appended; `append_time`: the topic stamps its own times, so any will do."""
    if size > settings.max_message_bytes:
        raise BatchTooLarge(f"the batch has {size} bytes, max.message.bytes is {settings.max_message_bytes}")
    if header.attributes & log_append_time_bit:
        raise InvalidTimestamp("the batch says that its times are the broker's own; only a broker may say so")
    if append_time:
        return
    late = now_ms + settings.message_timestamp_after_max_ms
    if header.max_timestamp > late:
        raise InvalidTimestamp(f"timestamp {header.max_timestamp} lies too far ahead; at most {late} is allowed now")
    early = now_ms - settings.message_timestamp_before_max_ms
    if 0 <= header.base_timestamp < early:
        raise InvalidTimestamp(f"timestamp {header.base_timestamp} lies too far back; at least {early} is allowed now")
