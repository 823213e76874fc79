"""Fetch: read record batches, as a consumer or as a follower.

The broker serves it with the hand-written `wire.hot_fetch`; this is its twin, for clients and tests. Tags from 10,000
on are our own, between brokers.
"""

from tailrace.model.ids import NO_ID, Id
from tailrace.wire.messages.leaders import LeaderIdAndEpoch, NodeEndpoint
from tailrace.wire.schema import Int8, Int16, Int32, Int64, Records, message, struct, wire


@struct
class ReplicaState:
    """Which follower asks; -1 for consumers."""

    replica_id: Int32 = -1
    replica_epoch: Int64 = -1


@struct
class PartitionToFetch:
    """Where to read on in one partition."""

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
class TopicToFetch:
    """A topic, by name up to version 12 and by id from 13 on."""

    name: str = wire(until=12, default="", ignorable=True)
    topic_id: Id = wire(since=13, default=NO_ID, ignorable=True)
    partitions: tuple[PartitionToFetch, ...]


@struct
class ForgottenTopic:
    """Partitions to drop from the fetch session."""

    name: str = wire(until=12, default="", ignorable=True)
    topic_id: Id = wire(since=13, default=NO_ID, ignorable=True)
    partitions: tuple[Int32, ...]


@message(api=1, versions="4-18", flexible="12+")
class FetchRequest:
    """What to read, from where, how much at most, and how long to wait for it."""

    cluster_id: str | None = wire(nullable="0+", tag=0, since=12, default=None, ignorable=True)
    replica_id: Int32 = wire(until=14, default=-1)  # -1: a consumer; later versions say it in `replica_state`
    replica_state: ReplicaState = wire(tag=1, since=15, default=ReplicaState())
    max_wait_ms: Int32
    min_bytes: Int32
    max_bytes: Int32 = 2**31 - 1
    isolation_level: Int8 = 0  # 1: only what is committed
    session_id: Int32 = wire(since=7, default=0, ignorable=True)
    session_epoch: Int32 = wire(since=7, default=-1, ignorable=True)  # -1: no session, 0: begin one
    topics: tuple[TopicToFetch, ...]
    forgotten_topics: tuple[ForgottenTopic, ...] = wire(since=7, default=())
    rack_id: str = wire(since=11, default="", ignorable=True)


@struct
class EpochEndOffset:
    """Where the logs of leader and follower part: the follower truncates to it."""

    epoch: Int32 = -1
    end_offset: Int64 = -1


@struct
class SnapshotId:
    """A snapshot to fetch instead, when the log no longer reaches back."""

    end_offset: Int64 = -1
    epoch: Int32 = -1


@struct
class AbortedTransaction:
    """A transaction whose records a read-committed consumer leaves out."""

    producer_id: Int64
    first_offset: Int64


@struct
class PartitionFetched:
    """Batches of one partition and its offsets."""

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


@struct
class TopicFetched:
    """The answers of one topic."""

    name: str = wire(until=12, default="", ignorable=True)
    topic_id: Id = wire(since=13, default=NO_ID, ignorable=True)
    partitions: tuple[PartitionFetched, ...]


@message(api=1, versions="4-18", flexible="12+")
class FetchResponse:
    """Batches by topic and partition; in a fetch session only those that changed."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = wire(since=7, default=0, ignorable=True)
    session_id: Int32 = wire(since=7, default=0)
    topics: tuple[TopicFetched, ...]
    node_endpoints: tuple[NodeEndpoint, ...] = wire(tag=0, since=16, default=(), ignorable=True)
