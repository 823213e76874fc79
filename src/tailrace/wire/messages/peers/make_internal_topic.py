"""MakeInternalTopic: asks the controller for a topic of the brokers' own, which clients cannot make."""

from tailrace.model.ids import NO_ID, Id
from tailrace.wire.schema import Int16, Int32, message, wire


@message(api=1018, versions="0-0", flexible="0+")
class MakeInternalTopic:
    name: str
    partitions: Int32
    replication_factor: Int32  # -1: three, or as many as there are brokers


@message(api=1018, versions="0-0", flexible="0+")
class MakeInternalTopicAnswer:
    """The topic, which may have been there."""

    error_code: Int16 = 0
    error_message: str | None = wire(nullable="0+", default=None)
    controller: Int32 = -1
    topic_id: Id = NO_ID
