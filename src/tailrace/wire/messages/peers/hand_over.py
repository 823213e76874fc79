"""HandOver: asks a leader to give its partitions to named successors, each of which must have the whole log."""

from tailrace.model.ids import Id
from tailrace.wire.messages.peers.answer import PeerAnswer
from tailrace.wire.schema import Int16, Int32, message, struct, wire


@struct
class PartitionToHandOver:
    topic_id: Id
    partition: Int32
    to: Int32


@message(api=1017, versions="0-0", flexible="0+")
class HandOver:
    partitions: tuple[PartitionToHandOver, ...]


@struct
class HandedOver:
    """How it went with one partition."""

    topic_id: Id
    partition: Int32
    error_code: Int16 = 0
    error_message: str | None = wire(nullable="0+", default=None)


@message(api=1017, versions="0-0", flexible="0+")
class HandOverAnswer(PeerAnswer):
    partitions: tuple[HandedOver, ...] = ()
