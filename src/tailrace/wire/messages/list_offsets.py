"""ListOffsets: the offset at the start, at the end or at a timestamp of a partition."""

from tailrace.wire.schema import Int8, Int16, Int32, Int64, message, struct, wire


@struct
class PartitionAsked:
    """A timestamp in milliseconds, or a negative number that names a position in the log."""

    partition: Int32
    current_leader_epoch: Int32 = wire(since=4, default=-1, ignorable=True)
    timestamp: Int64  # -1: the end, -2: the start, -3: the record with the largest timestamp


@struct
class TopicAsked:
    """A topic and the partitions to look up."""

    name: str
    partitions: tuple[PartitionAsked, ...]


@message(api=2, versions="1-11", flexible="6+")
class ListOffsetsRequest:
    """The partitions and timestamps to look up."""

    replica_id: Int32 = -1
    isolation_level: Int8 = wire(since=2, default=0)
    topics: tuple[TopicAsked, ...]
    timeout_ms: Int32 = wire(since=10, default=0, ignorable=True)


@struct
class PartitionOffset:
    """The first record at or after the timestamp; -1 if there is none."""

    partition: Int32
    error_code: Int16 = 0
    timestamp: Int64 = -1
    offset: Int64 = -1
    leader_epoch: Int32 = wire(since=4, default=-1, ignorable=True)


@struct
class TopicOffsets:
    """The results for one topic."""

    name: str
    partitions: tuple[PartitionOffset, ...]


@message(api=2, versions="1-11", flexible="6+")
class ListOffsetsResponse:
    """The offsets found."""

    throttle_time_ms: Int32 = wire(since=2, default=0, ignorable=True)
    topics: tuple[TopicOffsets, ...]
