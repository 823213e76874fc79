"""TxnOffsetCommit: offsets of a group that are committed if the transaction commits."""

from tailrace.wire.messages.results import TopicResults
from tailrace.wire.schema import Int16, Int32, Int64, message, struct, wire


@struct
class TxnPartitionToCommit:
    """The next offset to read, and free-form metadata of the client."""

    partition: Int32
    committed_offset: Int64
    committed_leader_epoch: Int32 = wire(since=2, default=-1, ignorable=True)
    committed_metadata: str | None = wire(nullable="0+")


@struct
class TxnTopicToCommit:
    """A topic and its partitions."""

    name: str
    partitions: tuple[TxnPartitionToCommit, ...]


@message(api=28, versions="0-5", flexible="3+")
class TxnOffsetCommitRequest:
    """The transaction, its offsets, and the group member; generation -1 without a member id means no member."""

    transactional_id: str
    group_id: str
    producer_id: Int64
    producer_epoch: Int16
    generation_id: Int32 = wire(since=3, default=-1)
    member_id: str = wire(since=3, default="")
    group_instance_id: str | None = wire(since=3, nullable="3+", default=None)
    topics: tuple[TxnTopicToCommit, ...]


@message(api=28, versions="0-5", flexible="3+")
class TxnOffsetCommitResponse:
    """The result for each partition."""

    throttle_time_ms: Int32 = 0
    topics: tuple[TopicResults, ...]
