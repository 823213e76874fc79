"""How messages name topics: with the numbers of partitions, or first by name and since some version by id."""

from tailrace.model.ids import NO_ID, Id
from tailrace.wire.schema import Int32, struct, wire


@struct
class TopicPartitions:
    """Partitions of one topic."""

    name: str
    partitions: tuple[Int32, ...]


@struct
class ByIdSince10:
    """A topic of OffsetCommit or OffsetFetch, by name up to version 9."""

    name: str = wire(until=9, default="", ignorable=True)
    topic_id: Id = wire(since=10, default=NO_ID, ignorable=True)


@struct
class ByIdSince13:
    """A topic of Produce or Fetch, by name up to version 12."""

    name: str = wire(until=12, default="", ignorable=True)
    topic_id: Id = wire(since=13, default=NO_ID, ignorable=True)
