"""OffsetDelete: delete committed offsets of topics that the group no longer subscribes to."""

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


@struct
class ForgottenPartition:
    """The result for one partition."""

    partition: Int32
    error_code: Int16 = 0


@struct
class ForgottenTopic:
    """The results for one topic."""

    name: str
    partitions: tuple[ForgottenPartition, ...]


@message(api=47, versions="0-0", flexible="none")
class OffsetDeleteResponse:
    """An error for the whole request, or the result for each partition."""

    error_code: Int16 = 0
    throttle_time_ms: Int32 = 0
    topics: tuple[ForgottenTopic, ...] = ()
