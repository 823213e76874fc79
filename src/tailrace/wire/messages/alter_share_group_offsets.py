"""AlterShareGroupOffsets: set the start offsets of a share group that has no members."""

from tailrace.model.ids import Id
from tailrace.wire.messages.response import ExplainedResponse
from tailrace.wire.messages.results import ExplainedResult
from tailrace.wire.schema import Int32, Int64, message, struct


@struct
class PartitionToAlter:
    """A partition and its new start offset."""

    partition: Int32
    start_offset: Int64


@struct
class TopicToAlter:
    """The partitions of one topic."""

    name: str
    partitions: tuple[PartitionToAlter, ...]


@message(api=91, versions="0-0", flexible="0+")
class AlterShareGroupOffsetsRequest:
    """The group and its new start offsets."""

    group_id: str
    topics: tuple[TopicToAlter, ...]


@struct
class AlteredTopic:
    """The results for one topic."""

    name: str
    topic_id: Id
    partitions: tuple[ExplainedResult, ...]


@message(api=91, versions="0-0", flexible="0+")
class AlterShareGroupOffsetsResponse(ExplainedResponse):
    """An error for the whole request, or the result for each partition."""

    topics: tuple[AlteredTopic, ...] = ()
