"""WriteMarkers: a coordinator of transactions has a leader end some on its partitions, which it names by topic id."""

from tailrace.model.ids import Id
from tailrace.wire.messages.peers.answer import PeerAnswer
from tailrace.wire.schema import Int8, Int16, Int32, Int64, message, struct


@struct
class PartitionToMark:
    topic_id: Id
    partition: Int32
    leader_epoch: Int32 = -1  # as the coordinator knows it: a leader that was replaced, and is back, is not meant


@struct
class Marker:
    """How one producer's transaction ended."""

    producer_id: Int64
    producer_epoch: Int16
    coordinator_epoch: Int32
    committed: bool
    transaction_version: Int8
    partitions: tuple[PartitionToMark, ...]


@message(api=1020, versions="0-0", flexible="0+")
class WriteMarkers:
    """Requests of one life of a broker to another are numbered, and one is under way at a time."""

    life: Id
    number: Int64
    markers: tuple[Marker, ...]


@message(api=1020, versions="0-0", flexible="0+")
class WriteMarkersAnswer(PeerAnswer):
    """An error code for every partition of every marker, in the order of the request; 0: the marker is committed."""

    codes: tuple[Int16, ...] = ()
