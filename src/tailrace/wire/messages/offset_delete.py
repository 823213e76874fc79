"""OffsetDelete: forget how far a group has read topics that it does not read any more."""

from tailrace.wire.schema import Int16, Int32, message, struct


@struct
class PartitionToForget:
    """One partition."""

    partition: Int32


@struct
class TopicToForget:
    """A topic and its partitions to forget."""

    name: str
    partitions: tuple[PartitionToForget, ...]


@message(api=47, versions="0-0", flexible="none")
class OffsetDeleteRequest:
    """What to forget, of which group."""

    group_id: str
    topics: tuple[TopicToForget, ...]


@struct
class ForgottenPartition:
    """What became of one."""

    partition: Int32
    error_code: Int16 = 0


@struct
class ForgottenTopic:
    """The answers of one topic."""

    name: str
    partitions: tuple[ForgottenPartition, ...]


@message(api=47, versions="0-0", flexible="none")
class OffsetDeleteResponse:
    """Why nothing was forgotten, or what became of each."""

    error_code: Int16 = 0
    throttle_time_ms: Int32 = 0
    topics: tuple[ForgottenTopic, ...] = ()
