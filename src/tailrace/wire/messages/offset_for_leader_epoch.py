"""OffsetForLeaderEpoch: where an epoch ended, so that a reader can tell whether its log was truncated."""

from tailrace.wire.schema import Int16, Int32, Int64, message, struct, wire


@struct
class PartitionAsked:
    """The epoch to look for, and the one the asker believes to be in force."""

    partition: Int32
    current_leader_epoch: Int32 = -1
    leader_epoch: Int32


@struct
class TopicAsked:
    """A topic and the partitions to look into."""

    name: str
    partitions: tuple[PartitionAsked, ...]


@message(api=23, versions="2-4", flexible="4+")
class OffsetForLeaderEpochRequest:
    """Partitions and the epochs last seen of them."""

    replica_id: Int32 = wire(since=3, default=-2, ignorable=True)
    topics: tuple[TopicAsked, ...]


@struct
class EpochEnd:
    """The largest epoch not above the one asked for, and the offset after its last record."""

    error_code: Int16 = 0
    partition: Int32
    leader_epoch: Int32 = -1
    end_offset: Int64 = -1


@struct
class TopicEpochEnds:
    """The answers of one topic."""

    name: str
    partitions: tuple[EpochEnd, ...]


@message(api=23, versions="2-4", flexible="4+")
class OffsetForLeaderEpochResponse:
    """The ends of those epochs."""

    throttle_time_ms: Int32 = 0
    topics: tuple[TopicEpochEnds, ...]
