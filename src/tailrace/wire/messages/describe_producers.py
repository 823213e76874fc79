"""DescribeProducers: the producers that wrote to partitions recently, and their open transactions."""

from tailrace.wire.schema import Int16, Int32, Int64, message, struct, wire


@struct
class TopicAskedFor:
    """A topic and the partitions to describe."""

    name: str
    partitions: tuple[Int32, ...]


@message(api=61, versions="0-0", flexible="0+")
class DescribeProducersRequest:
    """The partitions to describe."""

    topics: tuple[TopicAskedFor, ...]


@struct
class ProducerState:
    """The state that a partition keeps of a producer; -1 means none."""

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
    """The partitions of one topic."""

    name: str
    partitions: tuple[PartitionProducers, ...]


@message(api=61, versions="0-0", flexible="0+")
class DescribeProducersResponse:
    """The producers of each partition."""

    throttle_time_ms: Int32 = 0
    topics: tuple[TopicProducers, ...]
