"""MakeInternalTopic: asks the controller for a topic of the brokers' own, which clients cannot make."""

from tailrace.model.ids import NO_ID, Id
from tailrace.wire.messages.peers.answer import PeerAnswer
from tailrace.wire.schema import Int32, message


@message(api=1018, versions="0-0", flexible="0+")
class MakeInternalTopic:
    name: str
    partitions: Int32
    replication_factor: Int32  # -1: three, or as many as there are brokers


@message(api=1018, versions="0-0", flexible="0+")
class MakeInternalTopicAnswer(PeerAnswer):
    """The topic, which may have been there."""

    topic_id: Id = NO_ID
