"""DescribeQuorum: who votes on a partition, who only listens, and how far each of them is."""

from tailrace.model.ids import NO_ID, Id
from tailrace.wire.schema import Int16, Int32, Int64, Uint16, message, struct, wire


@struct
class PartitionToDescribe:
    """A partition, by its number."""

    partition: Int32


@struct
class TopicToDescribe:
    """A topic's partitions; Kafka has a quorum for `__cluster_metadata` only, we have one for each."""

    name: str
    partitions: tuple[PartitionToDescribe, ...]


@message(api=55, versions="0-2", flexible="0+")
class DescribeQuorumRequest:
    """The partitions to describe."""

    topics: tuple[TopicToDescribe, ...]


@struct
class ReplicaProgress:
    """How far a replica is, as its leader knows; times are by the leader's clock."""

    replica_id: Int32
    replica_directory_id: Id = wire(since=2, default=NO_ID, ignorable=True)
    log_end_offset: Int64  # -1: not known
    last_fetch_timestamp_ms: Int64 = wire(since=1, default=-1, ignorable=True)
    last_caught_up_timestamp_ms: Int64 = wire(since=1, default=-1, ignorable=True)


@struct
class QuorumOfPartition:
    """A leader and those that fetch from it."""

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
    """Where a voter can be reached."""

    name: str
    host: str
    port: Uint16


@struct
class QuorumNode:
    """A voter, and its listeners."""

    node_id: Int32
    listeners: tuple[Listener, ...]


@message(api=55, versions="0-2", flexible="0+")
class DescribeQuorumResponse:
    """The quorums, and where their members are."""

    error_code: Int16 = 0
    error_message: str | None = wire(nullable="2+", since=2, default=None, ignorable=True)
    topics: tuple[QuorumsOfTopic, ...] = ()
    nodes: tuple[QuorumNode, ...] = wire(since=2, default=(), ignorable=True)
