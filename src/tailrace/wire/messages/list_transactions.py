"""ListTransactions: the transactions that one broker coordinates."""

from tailrace.wire.schema import Int16, Int32, Int64, message, struct, wire


@message(api=66, versions="0-2", flexible="0+")
class ListTransactionsRequest:
    """Filters on the transactions to list; an empty filter lets all through."""

    state_filters: tuple[str, ...]
    producer_id_filters: tuple[Int64, ...]
    duration_filter: Int64 = wire(since=1, default=-1)  # only transactions open for longer, in milliseconds
    transactional_id_pattern: str | None = wire(since=2, nullable="2+", default=None)


@struct
class ListedTransaction:
    """One transaction."""

    transactional_id: str
    producer_id: Int64
    transaction_state: str


@message(api=66, versions="0-2", flexible="0+")
class ListTransactionsResponse:
    """The transactions, and the states of the filter that do not exist."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    unknown_state_filters: tuple[str, ...] = ()
    transaction_states: tuple[ListedTransaction, ...] = ()
