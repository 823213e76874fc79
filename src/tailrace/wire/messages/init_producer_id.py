"""InitProducerId: a producer id and epoch for an idempotent or transactional producer."""

from tailrace.wire.schema import Int16, Int32, Int64, message, wire


@message(api=22, versions="0-5", flexible="2+")
class InitProducerIdRequest:
    """A transactional id; None for a producer that is only idempotent."""

    transactional_id: str | None = wire(nullable="0+", default=None)
    transaction_timeout_ms: Int32
    producer_id: Int64 = wire(since=3, default=-1)
    producer_epoch: Int16 = wire(since=3, default=-1)


@message(api=22, versions="0-5", flexible="2+")
class InitProducerIdResponse:
    """The producer id and epoch for the producer's batches."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id: Int64 = -1
    producer_epoch: Int16 = 0
