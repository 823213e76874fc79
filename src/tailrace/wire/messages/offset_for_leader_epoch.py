"""OffsetForLeaderEpoch: the end offset of a leader epoch, by which a client detects that the log was truncated."""

from tailrace.wire.schema import Int16, Int32, Int64, message, struct, wire


@struct
class PartitionAsked:
    """The epoch to look up, and the current epoch as the client knows it."""

    partition: Int32
    current_leader_epoch: Int32 = -1
    leader_epoch: Int32


@struct
class TopicAsked:
    """A topic and the partitions to look up."""

    name: str
    partitions: tuple[PartitionAsked, ...]


@message(api=23, versions="2-4", flexible="4+")
class OffsetForLeaderEpochRequest:
    """The partitions and the epochs to look up."""

    replica_id: Int32 = wire(since=3, default=-2, ignorable=True)
    topics: tuple[TopicAsked, ...]


@struct
class EpochEnd:
    """The largest epoch that is not above the requested one, and its end offset."""

    error_code: Int16 = 0
    partition: Int32
    leader_epoch: Int32 = -1
    end_offset: Int64 = -1


@struct
class TopicEpochEnds:
    """The results for one topic."""

    name: str
    partitions: tuple[EpochEnd, ...]


@message(api=23, versions="2-4", flexible="4+")
class OffsetForLeaderEpochResponse:
    """The end offsets of the epochs."""

    throttle_time_ms: Int32 = 0
    topics: tuple[TopicEpochEnds, ...]
