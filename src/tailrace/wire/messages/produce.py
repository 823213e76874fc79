"""Produce: append record batches.

The broker uses the hand-written codec `wire.hot_produce`; clients and tests use this declaration, and tests compare the
two.
"""

from tailrace.wire.messages.leaders import LeaderIdAndEpoch, NodeEndpoint
from tailrace.wire.messages.named_topics import ByIdSince13
from tailrace.wire.schema import Int16, Int32, Int64, Records, message, struct, wire


@struct
class PartitionToProduce:
    """Record batches for one partition."""

    partition: Int32
    records: Records | None = wire(nullable="0+")


@struct
class TopicToProduce(ByIdSince13):
    """A topic, by name up to version 12 and by id from 13 on."""

    partitions: tuple[PartitionToProduce, ...]


@message(api=0, versions="3-13", flexible="9+")
class ProduceRequest:
    """The batches to append, by topic and partition."""

    transactional_id: str | None = wire(nullable="0+", default=None)
    acks: Int16  # respond: 0: never, 1: once the leader has appended, -1: once it is committed
    timeout_ms: Int32
    topics: tuple[TopicToProduce, ...]


@struct
class RecordError:
    """A record because of which the whole batch was rejected."""

    batch_index: Int32
    message: str | None = wire(nullable="0+", default=None)


@struct
class PartitionProduced:
    """The offset of the first appended record, or an error."""

    partition: Int32
    error_code: Int16 = 0
    base_offset: Int64
    log_append_time_ms: Int64 = -1  # -1: records keep their create time
    log_start_offset: Int64 = wire(since=5, default=-1, ignorable=True)
    record_errors: tuple[RecordError, ...] = wire(since=8, default=(), ignorable=True)
    error_message: str | None = wire(nullable="0+", since=8, default=None, ignorable=True)
    current_leader: LeaderIdAndEpoch = wire(tag=0, since=10, default=LeaderIdAndEpoch(), ignorable=True)


@struct
class TopicProduced(ByIdSince13):
    """The results for one topic."""

    partitions: tuple[PartitionProduced, ...]


@message(api=0, versions="3-13", flexible="9+")
class ProduceResponse:
    """The result for each partition."""

    topics: tuple[TopicProduced, ...]
    throttle_time_ms: Int32 = 0
    node_endpoints: tuple[NodeEndpoint, ...] = wire(tag=0, since=10, default=(), ignorable=True)
