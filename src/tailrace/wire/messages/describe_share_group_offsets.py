"""DescribeShareGroupOffsets: the start offsets of share groups, and how many records each has yet to process."""

from tailrace.model.ids import Id
from tailrace.wire.messages.named_topics import TopicPartitions
from tailrace.wire.schema import Int16, Int32, Int64, message, struct, wire


@struct
class GroupToDescribe:
    """A group and the topics wanted of it; None: all of its topics."""

    group_id: str
    topics: tuple[TopicPartitions, ...] | None = wire(nullable="0+")


@message(api=90, versions="0-1", flexible="0+")
class DescribeShareGroupOffsetsRequest:
    """Which groups to describe."""

    groups: tuple[GroupToDescribe, ...]


@struct
class DescribedPartition:
    """The offsets of one partition, or an error."""

    partition: Int32
    start_offset: Int64 = -1
    leader_epoch: Int32 = 0
    lag: Int64 = wire(since=1, default=-1, ignorable=True)  # -1: unknown
    error_code: Int16 = 0
    error_message: str | None = wire(nullable="0+", default=None)


@struct
class DescribedTopic:
    """The partitions of one topic."""

    name: str
    topic_id: Id
    partitions: tuple[DescribedPartition, ...]


@struct
class DescribedGroup:
    """The topics of one group, or an error."""

    group_id: str
    topics: tuple[DescribedTopic, ...] = ()
    error_code: Int16 = 0
    error_message: str | None = wire(nullable="0+", default=None)


@message(api=90, versions="0-1", flexible="0+")
class DescribeShareGroupOffsetsResponse:
    """The groups, in the order of the request."""

    throttle_time_ms: Int32 = 0
    groups: tuple[DescribedGroup, ...]
