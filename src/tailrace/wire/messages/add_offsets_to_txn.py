"""AddOffsetsToTxn: add the offsets of a consumer group to a transaction."""

from tailrace.wire.schema import Int16, Int32, Int64, message


@message(api=25, versions="0-4", flexible="3+")
class AddOffsetsToTxnRequest:
    """The transaction and the group whose offsets it will commit."""

    transactional_id: str
    producer_id: Int64
    producer_epoch: Int16
    group_id: str


@message(api=25, versions="0-4", flexible="3+")
class AddOffsetsToTxnResponse:
    """Whether the group was added."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
