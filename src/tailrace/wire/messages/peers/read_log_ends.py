"""ReadLogEnds: a group coordinator asks a leader where its partitions end, to tell how far share groups are behind."""

from tailrace.model.ids import Id
from tailrace.wire.schema import Int16, Int32, Int64, message, struct, wire


@struct
class PartitionToRead:
    topic_id: Id
    partition: Int32


@message(api=1024, versions="0-0", flexible="0+")
class ReadLogEnds:
    partitions: tuple[PartitionToRead, ...]


@message(api=1024, versions="0-0", flexible="0+")
class ReadLogEndsAnswer:
    error_code: Int16 = 0
    error_message: str | None = wire(nullable="0+", default=None)
    controller: Int32 = -1
    ends: tuple[Int64, ...] = ()  # high watermarks, in the same order; -1: this broker does not lead the partition
