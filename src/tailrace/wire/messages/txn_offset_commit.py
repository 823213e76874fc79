"""TxnOffsetCommit: how far a group has read, if the transaction commits."""

from tailrace.wire.schema import Int16, Int32, Int64, message, struct, wire


@struct
class TxnPartitionToCommit:
    """The next offset to read, and a note beside it."""

    partition: Int32
    committed_offset: Int64
    committed_leader_epoch: Int32 = wire(since=2, default=-1, ignorable=True)
    committed_metadata: str | None = wire(nullable="0+")


@struct
class TxnTopicToCommit:
    """A topic."""

    name: str
    partitions: tuple[TxnPartitionToCommit, ...]


@message(api=28, versions="0-5", flexible="3+")
class TxnOffsetCommitRequest:
    """Which transaction commits, and which member of the group; generation -1 and no member id is none."""

    transactional_id: str
    group_id: str
    producer_id: Int64
    producer_epoch: Int16
    generation_id: Int32 = wire(since=3, default=-1)
    member_id: str = wire(since=3, default="")
    group_instance_id: str | None = wire(since=3, nullable="3+", default=None)
    topics: tuple[TxnTopicToCommit, ...]


@struct
class TxnCommittedPartition:
    """What became of one."""

    partition: Int32
    error_code: Int16 = 0


@struct
class TxnCommittedTopic:
    """The answers of one topic."""

    name: str
    partitions: tuple[TxnCommittedPartition, ...]


@message(api=28, versions="0-5", flexible="3+")
class TxnOffsetCommitResponse:
    """What became of each."""

    throttle_time_ms: Int32 = 0
    topics: tuple[TxnCommittedTopic, ...]
