"""DescribeProducers: who has written to partitions of late, and what they have open there."""

from tailrace.wire.schema import Int16, Int32, Int64, message, struct, wire


@struct
class TopicAskedFor:
    """A topic and the partitions to look into."""

    name: str
    partitions: tuple[Int32, ...]


@message(api=61, versions="0-0", flexible="0+")
class DescribeProducersRequest:
    """The partitions to look into."""

    topics: tuple[TopicAskedFor, ...]


@struct
class ProducerState:
    """What a partition remembers of a producer; -1 stands for nothing."""

    producer_id: Int64
    producer_epoch: Int32
    last_sequence: Int32 = -1
    last_timestamp: Int64 = -1
    coordinator_epoch: Int32
    current_txn_start_offset: Int64 = -1


@struct
class PartitionProducers:
    """The producers of one partition."""

    partition: Int32
    error_code: Int16 = 0
    error_message: str | None = wire(nullable="0+", default=None)
    active_producers: tuple[ProducerState, ...] = ()


@struct
class TopicProducers:
    """The answers of one topic."""

    name: str
    partitions: tuple[PartitionProducers, ...]


@message(api=61, versions="0-0", flexible="0+")
class DescribeProducersResponse:
    """What each partition remembers."""

    throttle_time_ms: Int32 = 0
    topics: tuple[TopicProducers, ...]
