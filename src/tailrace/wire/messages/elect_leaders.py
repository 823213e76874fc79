"""ElectLeaders: elect the preferred replicas as leaders."""

from typing import Final

from tailrace.wire.messages.named_topics import TopicPartitions
from tailrace.wire.messages.results import ExplainedResult
from tailrace.wire.schema import Int8, Int16, Int32, message, struct, wire

PREFERRED: Final = 0
UNCLEAN: Final = 1  # the first live replica, in sync or not


@message(api=43, versions="0-2", flexible="2+")
class ElectLeadersRequest:
    """The partitions for which to elect leaders."""

    election_type: Int8 = wire(since=1, default=PREFERRED)
    topics: tuple[TopicPartitions, ...] | None = wire(nullable="0+")  # None: all partitions
    timeout_ms: Int32 = 60_000


@struct
class TopicElected:
    """The results for one topic."""

    name: str
    partitions: tuple[ExplainedResult, ...]


@message(api=43, versions="0-2", flexible="2+")
class ElectLeadersResponse:
    """The result of each election."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = wire(since=1, default=0, ignorable=True)
    topics: tuple[TopicElected, ...] = ()
