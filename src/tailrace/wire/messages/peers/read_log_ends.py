"""ReadLogEnds: a group coordinator asks a leader where its partitions end, to tell how far share groups are behind."""

from tailrace.model.ids import Id
from tailrace.wire.messages.peers.answer import PeerAnswer
from tailrace.wire.schema import Int32, Int64, message, struct


@struct
class PartitionToRead:
    topic_id: Id
    partition: Int32


@message(api=1024, versions="0-0", flexible="0+")
class ReadLogEnds:
    partitions: tuple[PartitionToRead, ...]


@message(api=1024, versions="0-0", flexible="0+")
class ReadLogEndsAnswer(PeerAnswer):
    ends: tuple[Int64, ...] = ()  # high watermarks, in the same order; -1: this broker does not lead the partition
