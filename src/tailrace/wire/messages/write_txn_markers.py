"""WriteTxnMarkers: end transactions on partitions. Coordinators send it, and who aborts one that hangs."""

from tailrace.wire.schema import Int8, Int16, Int32, Int64, message, struct, wire


@struct
class TopicToMark:
    """Partitions of one topic."""

    name: str
    partitions: tuple[Int32, ...]


@struct
class MarkerToWrite:
    """How one producer's transaction ended."""

    producer_id: Int64
    producer_epoch: Int16
    committed: bool
    topics: tuple[TopicToMark, ...]
    coordinator_epoch: Int32
    transaction_version: Int8 = wire(since=2, default=0, ignorable=True)


@message(api=27, versions="1-2", flexible="1+")
class WriteTxnMarkersRequest:
    """The markers to write."""

    markers: tuple[MarkerToWrite, ...]


@struct
class MarkedPartition:
    """What became of one."""

    partition: Int32
    error_code: Int16 = 0


@struct
class MarkedTopic:
    """The answers of one topic."""

    name: str
    partitions: tuple[MarkedPartition, ...]


@struct
class WrittenMarker:
    """The answers about one producer."""

    producer_id: Int64
    topics: tuple[MarkedTopic, ...]


@message(api=27, versions="1-2", flexible="1+")
class WriteTxnMarkersResponse:
    """What became of each."""

    markers: tuple[WrittenMarker, ...]
