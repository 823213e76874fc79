"""DescribeLogDirs: the disk space that each partition takes."""

from tailrace.wire.messages.named_topics import TopicPartitions
from tailrace.wire.schema import Int16, Int32, Int64, message, struct, wire


@message(api=35, versions="1-5", flexible="2+")
class DescribeLogDirsRequest:
    """Which partitions to measure; None for all."""

    topics: tuple[TopicPartitions, ...] | None = wire(nullable="0+", default=None)


@struct
class PartitionSize:
    """The size of a replica in bytes, and its lag."""

    partition: Int32
    size_bytes: Int64
    offset_lag: Int64 = 0
    is_future: bool = False  # a replica that is being moved to another directory
    # Tailrace's own: where the replica is damaged, until it is repaired. Other clients skip a tag they do not know.
    damage: str = wire(tag=10_000, since=2, default="", ignorable=True)


@struct
class TopicSizes:
    """The partitions of one topic."""

    name: str
    partitions: tuple[PartitionSize, ...]


@struct
class DescribedLogDir:
    """A data directory and the partitions in it."""

    error_code: Int16 = 0
    log_dir: str
    topics: tuple[TopicSizes, ...]
    total_bytes: Int64 = wire(since=4, default=-1, ignorable=True)
    usable_bytes: Int64 = wire(since=4, default=-1, ignorable=True)
    is_cordoned: bool = wire(since=5, default=False, ignorable=True)


@message(api=35, versions="1-5", flexible="2+")
class DescribeLogDirsResponse:
    """The data directories."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = wire(since=3, default=0, ignorable=True)
    results: tuple[DescribedLogDir, ...]
