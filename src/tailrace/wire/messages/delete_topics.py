"""DeleteTopics: delete topics with their records."""

from tailrace.model.ids import NO_ID, Id
from tailrace.wire.schema import Int16, Int32, message, struct, wire


@struct
class TopicToDelete:
    """A topic by name or by id."""

    name: str | None = wire(nullable="0+", default=None)
    topic_id: Id = NO_ID


@message(api=20, versions="1-6", flexible="4+")
class DeleteTopicsRequest:
    """The topics to delete: `topic_names` up to version 5, `topics` from 6 on."""

    topics: tuple[TopicToDelete, ...] = wire(since=6, default=())
    topic_names: tuple[str, ...] = wire(until=5, default=(), ignorable=True)
    timeout_ms: Int32 = 60_000


@struct
class DeletedTopic:
    """The result for one topic."""

    name: str | None = wire(nullable="6+")
    topic_id: Id = wire(since=6, default=NO_ID, ignorable=True)
    error_code: Int16 = 0
    error_message: str | None = wire(nullable="0+", since=5, default=None, ignorable=True)


@message(api=20, versions="1-6", flexible="4+")
class DeleteTopicsResponse:
    """The result for each topic."""

    throttle_time_ms: Int32 = 0
    topics: tuple[DeletedTopic, ...]
