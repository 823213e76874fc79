"""CreatePartitions: give topics more partitions."""

from tailrace.wire.schema import Int16, Int32, message, struct, wire


@struct
class NewPartition:
    """The brokers that are to hold a new partition."""

    broker_ids: tuple[Int32, ...]


@struct
class TopicToGrow:
    """A topic and how many partitions it is to have in all."""

    name: str
    count: Int32
    assignments: tuple[NewPartition, ...] | None = wire(nullable="0+", default=None)  # None: the controller places them


@message(api=37, versions="0-3", flexible="2+")
class CreatePartitionsRequest:
    """The topics to grow."""

    topics: tuple[TopicToGrow, ...]
    timeout_ms: Int32 = 60_000
    validate_only: bool = False


@struct
class GrownTopic:
    """A topic that has grown, or why it has not."""

    name: str
    error_code: Int16 = 0
    error_message: str | None = wire(nullable="0+", default=None)


@message(api=37, versions="0-3", flexible="2+")
class CreatePartitionsResponse:
    """What became of each."""

    throttle_time_ms: Int32 = 0
    results: tuple[GrownTopic, ...]
