"""DescribeQuorum: the voters and observers of a partition, and the log end offset of each."""

from tailrace.model.ids import NO_ID, Id
from tailrace.wire.schema import Int16, Int32, Int64, Uint16, message, struct, wire


@struct
class PartitionToDescribe:
    """The number of a partition."""

    partition: Int32


@struct
class TopicToDescribe:
    """A topic and its partitions. Kafka has a quorum for `__cluster_metadata` only, Tailrace one per partition."""

    name: str
    partitions: tuple[PartitionToDescribe, ...]


@message(api=55, versions="0-2", flexible="0+")
class DescribeQuorumRequest:
    """The partitions to describe."""

    topics: tuple[TopicToDescribe, ...]


@struct
class ReplicaProgress:
    """How far a replica has fetched, as its leader knows it; times are by the leader's clock."""

    replica_id: Int32
    replica_directory_id: Id = wire(since=2, default=NO_ID, ignorable=True)
    log_end_offset: Int64  # -1: not known
    last_fetch_timestamp_ms: Int64 = wire(since=1, default=-1, ignorable=True)
    last_caught_up_timestamp_ms: Int64 = wire(since=1, default=-1, ignorable=True)


@struct
class QuorumOfPartition:
    """The leader of a partition and the replicas that fetch from it."""

    partition: Int32
    error_code: Int16 = 0
    error_message: str | None = wire(nullable="2+", since=2, default=None, ignorable=True)
    leader_id: Int32 = -1
    leader_epoch: Int32 = -1
    high_watermark: Int64 = -1
    current_voters: tuple[ReplicaProgress, ...] = ()
    observers: tuple[ReplicaProgress, ...] = ()


@struct
class QuorumsOfTopic:
    """The quorums of one topic."""

    name: str
    partitions: tuple[QuorumOfPartition, ...]


@struct
class Listener:
    """An address of a voter."""

    name: str
    host: str
    port: Uint16


@struct
class QuorumNode:
    """A voter and its listeners."""

    node_id: Int32
    listeners: tuple[Listener, ...]


@message(api=55, versions="0-2", flexible="0+")
class DescribeQuorumResponse:
    """The quorums, and the addresses of their voters."""

    error_code: Int16 = 0
    error_message: str | None = wire(nullable="2+", since=2, default=None, ignorable=True)
    topics: tuple[QuorumsOfTopic, ...] = ()
    nodes: tuple[QuorumNode, ...] = wire(since=2, default=(), ignorable=True)
