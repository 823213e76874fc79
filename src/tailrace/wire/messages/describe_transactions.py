"""DescribeTransactions: the state of transactions, asked of their coordinator."""

from tailrace.wire.schema import Int16, Int32, Int64, message, struct


@message(api=65, versions="0-0", flexible="0+")
class DescribeTransactionsRequest:
    """Whose."""

    transactional_ids: tuple[str, ...]


@struct
class TransactionTopic:
    """Partitions of one topic that the transaction has to do with."""

    topic: str
    partitions: tuple[Int32, ...]


@struct
class DescribedTransaction:
    """One transaction; without start while none is under way."""

    error_code: Int16 = 0
    transactional_id: str
    transaction_state: str = ""
    transaction_timeout_ms: Int32 = 0
    transaction_start_time_ms: Int64 = 0
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    topics: tuple[TransactionTopic, ...] = ()


@message(api=65, versions="0-0", flexible="0+")
class DescribeTransactionsResponse:
    """All of them."""

    throttle_time_ms: Int32 = 0
    transaction_states: tuple[DescribedTransaction, ...]
