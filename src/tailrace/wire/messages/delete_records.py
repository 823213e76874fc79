"""DeleteRecords: move the start of partitions forward."""

from tailrace.wire.schema import Int16, Int32, Int64, message, struct


@struct
class PartitionToTrim:
    """The first offset to keep; -1 keeps nothing below the high watermark."""

    partition: Int32
    offset: Int64


@struct
class TopicToTrim:
    """A topic and the partitions to trim."""

    name: str
    partitions: tuple[PartitionToTrim, ...]


@message(api=21, versions="0-2", flexible="2+")
class DeleteRecordsRequest:
    """The partitions to trim."""

    topics: tuple[TopicToTrim, ...]
    timeout_ms: Int32 = 60_000


@struct
class TrimmedPartition:
    """The new start of a partition, or an error."""

    partition: Int32
    low_watermark: Int64
    error_code: Int16 = 0


@struct
class TrimmedTopic:
    """The answers of one topic."""

    name: str
    partitions: tuple[TrimmedPartition, ...]


@message(api=21, versions="0-2", flexible="2+")
class DeleteRecordsResponse:
    """What became of each."""

    throttle_time_ms: Int32 = 0
    topics: tuple[TrimmedTopic, ...]
