"""InitProducerId: an id and epoch for a producer that wants its batches appended once and in order."""

from tailrace.wire.schema import Int16, Int32, Int64, message, wire


@message(api=22, versions="0-5", flexible="2+")
class InitProducerIdRequest:
    """Who asks; without a transactional id only idempotence is wanted."""

    transactional_id: str | None = wire(nullable="0+", default=None)
    transaction_timeout_ms: Int32
    producer_id: Int64 = wire(since=3, default=-1)
    producer_epoch: Int16 = wire(since=3, default=-1)


@message(api=22, versions="0-5", flexible="2+")
class InitProducerIdResponse:
    """The id and epoch to stamp batches with."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id: Int64 = -1
    producer_epoch: Int16 = 0
