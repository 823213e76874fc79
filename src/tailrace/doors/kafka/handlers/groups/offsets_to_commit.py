"""The common part of OffsetCommit and TxnOffsetCommit: the offsets of a request, and an error code for each."""

from collections.abc import Iterator, Sequence

from tailrace.broker.services.groups import OffsetToCommit
from tailrace.cluster.image import Topic
from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.request_limits import require_few
from tailrace.model.faults import Fault, UnknownTopic, UnknownTopicId
from tailrace.model.ids import Id, show_id
from tailrace.wire.messages.offset_commit import PartitionToCommit
from tailrace.wire.messages.txn_offset_commit import TxnPartitionToCommit

ToCommit = PartitionToCommit | TxnPartitionToCommit


def find_topic(call: Call, topic: str | Id) -> Topic | Fault:
    found = call.services.topics.find(call.caller, topic)
    if found is not None:
        return found
    if isinstance(topic, str):
        return UnknownTopic(f"there is no topic {topic}")
    return UnknownTopicId(f"there is no topic with id {show_id(topic)}")


def offsets_to_commit(topics: Sequence[tuple[Topic | Fault, Sequence[ToCommit]]]) -> list[OffsetToCommit]:
    offsets = [
        OffsetToCommit(
            topic, one.partition, one.committed_offset, one.committed_leader_epoch, one.committed_metadata or ""
        )
        for topic, partitions in topics
        for one in partitions
    ]
    require_few(len(offsets))
    return offsets


def by_topic(
    topics: Sequence[tuple[Topic | Fault, Sequence[ToCommit]]], codes: Sequence[int]
) -> Iterator[list[tuple[int, int]]]:
    """The partitions of each topic with their error codes; `codes` are in the order of the offsets."""
    left = iter(codes)
    for _, partitions in topics:
        yield [(one.partition, next(left)) for one in partitions]
