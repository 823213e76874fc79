"""ElectLeaders: let the preferred replicas lead again."""

from typing import Final

from tailrace.wire.schema import Int8, Int16, Int32, message, struct, wire

PREFERRED: Final = 0
UNCLEAN: Final = 1  # the first live replica, in sync or not


@struct
class TopicToElect:
    """Partitions of one topic that are to have another leader."""

    name: str
    partitions: tuple[Int32, ...] = ()


@message(api=43, versions="0-2", flexible="2+")
class ElectLeadersRequest:
    """The partitions to hold elections for."""

    election_type: Int8 = wire(since=1, default=PREFERRED)
    topics: tuple[TopicToElect, ...] | None = wire(nullable="0+")  # None: all there are
    timeout_ms: Int32 = 60_000


@struct
class PartitionElected:
    """What became of one partition's election."""

    partition: Int32
    error_code: Int16 = 0
    error_message: str | None = wire(nullable="0+", default=None)


@struct
class TopicElected:
    """What became of one topic's elections."""

    name: str
    partitions: tuple[PartitionElected, ...]


@message(api=43, versions="0-2", flexible="2+")
class ElectLeadersResponse:
    """What became of each election."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = wire(since=1, default=0, ignorable=True)
    topics: tuple[TopicElected, ...] = ()
