"""WriteTxnMarkers: write the markers that end transactions to partitions. Sent by coordinators, and to abort a
hanging transaction.
"""

from tailrace.wire.messages.results import TopicResults
from tailrace.wire.schema import Int8, Int16, Int32, Int64, message, struct, wire


@struct
class TopicToMark:
    """Partitions of one topic."""

    name: str
    partitions: tuple[Int32, ...]


@struct
class MarkerToWrite:
    """The outcome of one producer's transaction, and its partitions."""

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
class WrittenMarker:
    """The results for one producer."""

    producer_id: Int64
    topics: tuple[TopicResults, ...]


@message(api=27, versions="1-2", flexible="1+")
class WriteTxnMarkersResponse:
    """The result for each marker."""

    markers: tuple[WrittenMarker, ...]
