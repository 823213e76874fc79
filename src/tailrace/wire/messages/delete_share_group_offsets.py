"""DeleteShareGroupOffsets: delete what a share group without members has stored about topics."""

from tailrace.model.ids import Id
from tailrace.wire.messages.response import ExplainedResponse
from tailrace.wire.schema import Int16, message, struct, wire


@struct
class TopicToDelete:
    """A topic whose offsets are deleted."""

    name: str


@message(api=92, versions="0-0", flexible="0+")
class DeleteShareGroupOffsetsRequest:
    """The group and the topics whose offsets are deleted."""

    group_id: str
    topics: tuple[TopicToDelete, ...]


@struct
class DeletedTopic:
    """The result for one topic."""

    name: str
    topic_id: Id
    error_code: Int16 = 0
    error_message: str | None = wire(nullable="0+", default=None)


@message(api=92, versions="0-0", flexible="0+")
class DeleteShareGroupOffsetsResponse(ExplainedResponse):
    """An error for the whole request, or the result for each topic."""

    topics: tuple[DeletedTopic, ...] = ()
