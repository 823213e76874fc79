"""TakeProducerIds: a broker takes a block of producer ids that no other will ever give out."""

from tailrace.wire.schema import Int16, Int32, Int64, message, wire


@message(api=1014, versions="0-0", flexible="0+")
class TakeProducerIds:
    broker_id: Int32


@message(api=1014, versions="0-0", flexible="0+")
class TakeProducerIdsAnswer:
    """The block: `count` ids from `first` on."""

    error_code: Int16 = 0
    error_message: str | None = wire(nullable="0+", default=None)
    controller: Int32 = -1
    first: Int64 = -1
    count: Int32 = 0
