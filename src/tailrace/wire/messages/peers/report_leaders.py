"""ReportLeaders: a leader tells the controller which partitions it leads and who keeps up, many at a time."""

from tailrace.model.ids import Id
from tailrace.wire.messages.peers.answer import PeerAnswer
from tailrace.wire.schema import Int32, message, struct


@struct
class LedPartition:
    """Who leads a partition in an epoch, and which replicas keep up."""

    topic_id: Id
    partition: Int32
    leader: Int32
    epoch: Int32
    in_sync: tuple[Int32, ...]


@message(api=1013, versions="0-0", flexible="0+")
class ReportLeaders:
    partitions: tuple[LedPartition, ...]


@message(api=1013, versions="0-0", flexible="0+")
class ReportLeadersAnswer(PeerAnswer):
    """Done, or why not."""
