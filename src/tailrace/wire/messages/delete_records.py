"""DeleteRecords: raise the log start offset of partitions."""

from tailrace.wire.schema import Int16, Int32, Int64, message, struct


@struct
class PartitionToTrim:
    """The new log start offset; -1 means the high watermark."""

    partition: Int32
    offset: Int64


@struct
class TopicToTrim:
    """A topic and the partitions whose records are deleted."""

    name: str
    partitions: tuple[PartitionToTrim, ...]


@message(api=21, versions="0-2", flexible="2+")
class DeleteRecordsRequest:
    """The partitions whose records are deleted, and up to which offset."""

    topics: tuple[TopicToTrim, ...]
    timeout_ms: Int32 = 60_000


@struct
class TrimmedPartition:
    """The new log start offset of a partition, or an error."""

    partition: Int32
    low_watermark: Int64
    error_code: Int16 = 0


@struct
class TrimmedTopic:
    """The results for one topic."""

    name: str
    partitions: tuple[TrimmedPartition, ...]


@message(api=21, versions="0-2", flexible="2+")
class DeleteRecordsResponse:
    """The result for each partition."""

    throttle_time_ms: Int32 = 0
    topics: tuple[TrimmedTopic, ...]
