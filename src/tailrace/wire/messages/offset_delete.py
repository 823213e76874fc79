"""OffsetDelete: delete committed offsets of topics that the group no longer subscribes to."""

from tailrace.wire.messages.results import TopicResults
from tailrace.wire.schema import Int16, Int32, message, struct


@struct
class PartitionToForget:
    """One partition."""

    partition: Int32


@struct
class TopicToForget:
    """A topic and the partitions whose offsets are deleted."""

    name: str
    partitions: tuple[PartitionToForget, ...]


@message(api=47, versions="0-0", flexible="none")
class OffsetDeleteRequest:
    """The group and the partitions whose offsets are deleted."""

    group_id: str
    topics: tuple[TopicToForget, ...]


@message(api=47, versions="0-0", flexible="none")
class OffsetDeleteResponse:
    """An error for the whole request, or the result for each partition."""

    error_code: Int16 = 0
    throttle_time_ms: Int32 = 0
    topics: tuple[TopicResults, ...] = ()
