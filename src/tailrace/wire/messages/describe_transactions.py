"""DescribeTransactions: the state of transactions, as their coordinator keeps it."""

from tailrace.wire.schema import Int16, Int32, Int64, message, struct


@message(api=65, versions="0-0", flexible="0+")
class DescribeTransactionsRequest:
    """The transactional ids to describe."""

    transactional_ids: tuple[str, ...]


@struct
class TransactionTopic:
    """Partitions of one topic that are part of the transaction."""

    topic: str
    partitions: tuple[Int32, ...]


@struct
class DescribedTransaction:
    """One transactional id; the start time is -1 if no transaction was started since InitProducerId."""

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
    """The state of each transactional id."""

    throttle_time_ms: Int32 = 0
    transaction_states: tuple[DescribedTransaction, ...]
