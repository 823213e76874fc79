"""EndTxn: commit or abort a transaction. From version 5 on each end gives the producer a new epoch (KIP-890)."""

from tailrace.wire.schema import Int16, Int32, Int64, message, wire


@message(api=26, versions="0-5", flexible="3+")
class EndTxnRequest:
    """The transaction, and whether it commits or aborts."""

    transactional_id: str
    producer_id: Int64
    producer_epoch: Int16
    committed: bool


@message(api=26, versions="0-5", flexible="3+")
class EndTxnResponse:
    """The producer id and epoch for the next transaction."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id: Int64 = wire(since=5, default=-1, ignorable=True)
    producer_epoch: Int16 = wire(since=5, default=-1, ignorable=True)
