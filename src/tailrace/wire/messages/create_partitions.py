"""CreatePartitions: raise the partition count of topics."""

from tailrace.wire.schema import Int16, Int32, message, struct, wire


@struct
class NewPartition:
    """The brokers that will host the replicas of a new partition."""

    broker_ids: tuple[Int32, ...]


@struct
class TopicToGrow:
    """A topic and its new partition count."""

    name: str
    count: Int32
    assignments: tuple[NewPartition, ...] | None = wire(nullable="0+", default=None)  # None: the controller assigns


@message(api=37, versions="0-3", flexible="2+")
class CreatePartitionsRequest:
    """The topics to which partitions are added."""

    topics: tuple[TopicToGrow, ...]
    timeout_ms: Int32 = 60_000
    validate_only: bool = False


@struct
class GrownTopic:
    """The result for one topic."""

    name: str
    error_code: Int16 = 0
    error_message: str | None = wire(nullable="0+", default=None)


@message(api=37, versions="0-3", flexible="2+")
class CreatePartitionsResponse:
    """The result for each topic."""

    throttle_time_ms: Int32 = 0
    results: tuple[GrownTopic, ...]
