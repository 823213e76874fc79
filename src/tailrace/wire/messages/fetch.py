"""Fetch: read record batches, as a consumer or as a follower.

The broker uses the hand-written codec `wire.hot_fetch`; clients and tests use this declaration, and tests compare the
two. Tags from 10,000 on are Tailrace's own, used between brokers.
"""

from tailrace.model.ids import NO_ID, Id
from tailrace.wire.messages.leaders import LeaderIdAndEpoch, NodeEndpoint
from tailrace.wire.messages.named_topics import ByIdSince13
from tailrace.wire.schema import Int8, Int16, Int32, Int64, Records, message, struct, wire


@struct
class ReplicaState:
    """The id of the follower that fetches; -1 for consumers."""

    replica_id: Int32 = -1
    replica_epoch: Int64 = -1


@struct
class PartitionToFetch:
    """A partition and the offset to fetch from."""

    partition: Int32
    current_leader_epoch: Int32 = wire(since=9, default=-1, ignorable=True)
    fetch_offset: Int64
    last_fetched_epoch: Int32 = wire(since=12, default=-1)
    log_start_offset: Int64 = wire(since=5, default=-1, ignorable=True)
    partition_max_bytes: Int32
    replica_directory_id: Id = wire(tag=0, since=17, default=NO_ID, ignorable=True)
    high_watermark: Int64 = wire(tag=1, since=18, default=2**63 - 1, ignorable=True)
    durable_offset: Int64 = wire(tag=10_000, since=18, default=-1, ignorable=True)


@struct
class TopicToFetch(ByIdSince13):
    """A topic, by name up to version 12 and by id from 13 on."""

    partitions: tuple[PartitionToFetch, ...]


@struct
class ForgottenTopic(ByIdSince13):
    """Partitions to remove from the fetch session."""

    partitions: tuple[Int32, ...]


@message(api=1, versions="4-18", flexible="12+")
class FetchRequest:
    """The partitions to fetch, the most bytes to return and how long to wait for the fewest."""

    cluster_id: str | None = wire(nullable="0+", tag=0, since=12, default=None, ignorable=True)
    replica_id: Int32 = wire(until=14, default=-1)  # -1: a consumer; later in `replica_state`
    replica_state: ReplicaState = wire(tag=1, since=15, default=ReplicaState())
    max_wait_ms: Int32
    min_bytes: Int32
    max_bytes: Int32 = 2**31 - 1
    isolation_level: Int8 = 0  # 0: read uncommitted, 1: read committed
    session_id: Int32 = wire(since=7, default=0, ignorable=True)
    session_epoch: Int32 = wire(since=7, default=-1, ignorable=True)  # -1: no session, 0: new session
    topics: tuple[TopicToFetch, ...]
    forgotten_topics: tuple[ForgottenTopic, ...] = wire(since=7, default=())
    rack_id: str = wire(since=11, default="", ignorable=True)


@struct
class EpochEndOffset:
    """Where the log of the follower diverges from the leader's: the follower truncates to this."""

    epoch: Int32 = -1
    end_offset: Int64 = -1


@struct
class SnapshotId:
    """The snapshot to fetch instead, when the leader's log starts after the fetch offset."""

    end_offset: Int64 = -1
    epoch: Int32 = -1


@struct
class AbortedTransaction:
    """A transaction whose records a read-committed consumer skips."""

    producer_id: Int64
    first_offset: Int64


@struct
class PartitionFetched:
    """Record batches of one partition, and its offsets."""

    partition: Int32
    error_code: Int16 = 0
    high_watermark: Int64
    last_stable_offset: Int64 = -1
    log_start_offset: Int64 = wire(since=5, default=-1, ignorable=True)
    diverging_epoch: EpochEndOffset = wire(tag=0, since=12, default=EpochEndOffset())
    current_leader: LeaderIdAndEpoch = wire(tag=1, since=12, default=LeaderIdAndEpoch(), ignorable=True)
    snapshot_id: SnapshotId = wire(tag=2, since=12, default=SnapshotId())
    aborted_transactions: tuple[AbortedTransaction, ...] | None = wire(nullable="0+", default=None)
    preferred_read_replica: Int32 = wire(since=11, default=-1)
    records: Records | None = wire(nullable="0+")
    log_end_offset: Int64 = wire(tag=10_000, since=12, default=-1, ignorable=True)  # the leader's
    tombstone_horizon: Int64 = wire(tag=10_001, since=12, default=-1, ignorable=True)  # of the leader's log
    begin_anew: bool = wire(tag=10_002, since=12, default=False, ignorable=True)  # the replica's log must be emptied


@struct
class TopicFetched(ByIdSince13):
    """The partitions of one topic."""

    partitions: tuple[PartitionFetched, ...]


@message(api=1, versions="4-18", flexible="12+")
class FetchResponse:
    """Record batches by topic and partition; in a fetch session only the partitions that changed."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = wire(since=7, default=0, ignorable=True)
    session_id: Int32 = wire(since=7, default=0)
    topics: tuple[TopicFetched, ...]
    node_endpoints: tuple[NodeEndpoint, ...] = wire(tag=0, since=16, default=(), ignorable=True)
