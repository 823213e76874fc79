"""Results of partitions, in the responses that hold an error code for each partition and nothing else."""

from tailrace.wire.schema import Int16, Int32, struct, wire


@struct
class PartitionResult:
    """The result for one partition."""

    partition: Int32
    error_code: Int16 = 0


@struct
class TopicResults:
    """The results for one topic."""

    name: str
    partitions: tuple[PartitionResult, ...]


@struct
class ExplainedResult:
    """The result for one partition, with a message if it is an error."""

    partition: Int32
    error_code: Int16 = 0
    error_message: str | None = wire(nullable="0+", default=None)
