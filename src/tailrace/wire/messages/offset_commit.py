"""OffsetCommit: commit offsets of a group."""

from tailrace.wire.messages.named_topics import ByIdSince10
from tailrace.wire.messages.results import PartitionResult
from tailrace.wire.schema import Int32, Int64, message, struct, wire


@struct
class PartitionToCommit:
    """The next offset to read, and free-form metadata of the client."""

    partition: Int32
    committed_offset: Int64
    committed_leader_epoch: Int32 = wire(since=6, default=-1, ignorable=True)
    committed_metadata: str | None = wire(nullable="0+")


@struct
class TopicToCommit(ByIdSince10):
    """A topic, by name up to version 9 and by id from 10 on."""

    partitions: tuple[PartitionToCommit, ...]


@message(api=8, versions="2-10", flexible="8+")
class OffsetCommitRequest:
    """The offsets and the member that commits; generation -1 without a member id means no member of the group."""

    group_id: str
    generation_id_or_member_epoch: Int32 = -1
    member_id: str = ""
    group_instance_id: str | None = wire(since=7, nullable="7+", default=None)
    retention_time_ms: Int64 = wire(until=4, default=-1, ignorable=True)  # -1: the broker's default
    topics: tuple[TopicToCommit, ...]


@struct
class CommittedTopic(ByIdSince10):
    """The results for one topic."""

    partitions: tuple[PartitionResult, ...]


@message(api=8, versions="2-10", flexible="8+")
class OffsetCommitResponse:
    """The result for each partition."""

    throttle_time_ms: Int32 = wire(since=3, default=0, ignorable=True)
    topics: tuple[CommittedTopic, ...]
