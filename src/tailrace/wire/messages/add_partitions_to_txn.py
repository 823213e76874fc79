"""AddPartitionsToTxn: add partitions to a transaction. Producers use versions up to 3, brokers from 4 on."""

from tailrace.wire.messages.results import TopicResults
from tailrace.wire.schema import Int16, Int32, Int64, message, struct, wire


@struct
class TopicToAdd:
    """Partitions of one topic."""

    name: str
    partitions: tuple[Int32, ...]


@struct
class TransactionToAdd:
    """One transaction; with `verify_only` the coordinator checks that the partitions were added before."""

    transactional_id: str
    producer_id: Int64
    producer_epoch: Int16
    verify_only: bool = False
    topics: tuple[TopicToAdd, ...]


@message(api=24, versions="0-5", flexible="3+")
class AddPartitionsToTxnRequest:
    """One transaction up to version 3, several from 4 on."""

    transactions: tuple[TransactionToAdd, ...] = wire(since=4, default=())
    transactional_id: str = wire(until=3, default="")
    producer_id: Int64 = wire(until=3, default=-1)
    producer_epoch: Int16 = wire(until=3, default=-1)
    topics: tuple[TopicToAdd, ...] = wire(until=3, default=())


@struct
class AddedTransaction:
    """The results for one transaction."""

    transactional_id: str
    topics: tuple[TopicResults, ...]


@message(api=24, versions="0-5", flexible="3+")
class AddPartitionsToTxnResponse:
    """The results for each partition."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = wire(since=4, default=0)
    transactions: tuple[AddedTransaction, ...] = wire(since=4, default=())
    topics: tuple[TopicResults, ...] = wire(until=3, default=())
