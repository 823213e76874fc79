"""DescribeTopicPartitions: topics in pages, for clusters whose Metadata response would be too large."""

from tailrace.model.ids import NO_ID, Id
from tailrace.wire.messages.authorization import NOT_ASKED
from tailrace.wire.schema import Int16, Int32, message, struct, wire


@struct
class TopicAsked:
    """The name of a topic."""

    name: str


@struct
class Cursor:
    """The first partition of a page."""

    topic: str
    partition: Int32


@message(api=75, versions="0-0", flexible="0+")
class DescribeTopicPartitionsRequest:
    """The topics to describe, starting at a cursor; an empty array means all topics."""

    topics: tuple[TopicAsked, ...]
    response_partition_limit: Int32 = 2000
    cursor: Cursor | None = wire(nullable="0+", default=None)


@struct
class DescribedPartition:
    """The leader and the replicas of a partition."""

    error_code: Int16 = 0
    partition: Int32
    leader_id: Int32
    leader_epoch: Int32 = -1
    replicas: tuple[Int32, ...]
    isr: tuple[Int32, ...]
    eligible_leader_replicas: tuple[Int32, ...] | None = wire(nullable="0+", default=None)
    last_known_eligible_leaders: tuple[Int32, ...] | None = wire(nullable="0+", default=None)
    offline_replicas: tuple[Int32, ...] = ()


@struct
class DescribedTopic:
    """A topic and those of its partitions that fit on the page."""

    error_code: Int16 = 0
    name: str | None = wire(nullable="0+")
    topic_id: Id = NO_ID
    is_internal: bool = False
    partitions: tuple[DescribedPartition, ...] = ()
    topic_authorized_operations: Int32 = NOT_ASKED


@message(api=75, versions="0-0", flexible="0+")
class DescribeTopicPartitionsResponse:
    """A page of topics, and the cursor of the next page."""

    throttle_time_ms: Int32 = 0
    topics: tuple[DescribedTopic, ...]
    next_cursor: Cursor | None = wire(nullable="0+", default=None)
