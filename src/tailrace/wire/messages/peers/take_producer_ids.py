"""TakeProducerIds: a broker takes a block of producer ids that no other will ever give out."""

from tailrace.wire.messages.peers.answer import PeerAnswer
from tailrace.wire.schema import Int32, Int64, message


@message(api=1014, versions="0-0", flexible="0+")
class TakeProducerIds:
    broker_id: Int32


@message(api=1014, versions="0-0", flexible="0+")
class TakeProducerIdsAnswer(PeerAnswer):
    """The block: `count` ids from `first` on."""

    first: Int64 = -1
    count: Int32 = 0
