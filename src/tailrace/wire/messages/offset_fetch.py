"""OffsetFetch: the committed offsets of groups."""

from tailrace.wire.messages.named_topics import ByIdSince10
from tailrace.wire.schema import Int16, Int32, Int64, message, struct, wire


@struct
class TopicWanted:
    """A topic and the partitions wanted."""

    name: str
    partition_indexes: tuple[Int32, ...]


@struct
class GroupTopicWanted(ByIdSince10):
    """A topic of one of several groups, by name up to version 9 and by id from 10 on."""

    partition_indexes: tuple[Int32, ...]


@struct
class GroupWanted:
    """One of several groups; topics None means all topics with committed offsets."""

    group_id: str
    member_id: str | None = wire(since=9, nullable="9+", default=None, ignorable=True)
    member_epoch: Int32 = wire(since=9, default=-1, ignorable=True)
    topics: tuple[GroupTopicWanted, ...] | None = wire(nullable="8+")


@message(api=9, versions="1-10", flexible="6+")
class OffsetFetchRequest:
    """One group up to version 7, several from 8 on."""

    group_id: str = wire(until=7, default="")
    topics: tuple[TopicWanted, ...] | None = wire(until=7, nullable="2-7", default=())
    groups: tuple[GroupWanted, ...] = wire(since=8, default=())
    require_stable: bool = wire(since=7, default=False)


@struct
class FetchedPartition:
    """The committed offset, -1 if there is none, and the metadata committed with it."""

    partition: Int32
    committed_offset: Int64
    committed_leader_epoch: Int32 = wire(since=5, default=-1, ignorable=True)
    metadata: str | None = wire(nullable="0+", default="")
    error_code: Int16 = 0


@struct
class FetchedTopic:
    """The partitions of one topic."""

    name: str
    partitions: tuple[FetchedPartition, ...]


@struct
class FetchedGroupTopic(ByIdSince10):
    """The partitions of one topic of one of several groups."""

    partitions: tuple[FetchedPartition, ...]


@struct
class FetchedGroup:
    """The committed offsets of one group."""

    group_id: str
    topics: tuple[FetchedGroupTopic, ...] = ()
    error_code: Int16 = 0


@message(api=9, versions="1-10", flexible="6+")
class OffsetFetchResponse:
    """The committed offsets: of one group up to version 7, of several from 8 on."""

    throttle_time_ms: Int32 = wire(since=3, default=0, ignorable=True)
    topics: tuple[FetchedTopic, ...] = wire(until=7, default=())
    error_code: Int16 = wire(since=2, until=7, default=0, ignorable=True)
    groups: tuple[FetchedGroup, ...] = wire(since=8, default=())
