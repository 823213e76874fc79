"""TakePart: a partition's leader asks a coordinator whether partitions take part in a transaction, or lets them."""

from tailrace.wire.messages.peers.answer import PeerAnswer
from tailrace.wire.schema import Int16, Int32, Int64, message, struct


@struct
class PartitionTakingPart:
    topic: str
    partition: Int32


@message(api=1021, versions="0-0", flexible="0+")
class TakePart:
    transactional_id: str
    producer_id: Int64
    producer_epoch: Int16
    add: bool
    partitions: tuple[PartitionTakingPart, ...]


@message(api=1021, versions="0-0", flexible="0+")
class TakePartAnswer(PeerAnswer):
    codes: tuple[Int16, ...] = ()  # for each, in the same order; 0: it takes part
