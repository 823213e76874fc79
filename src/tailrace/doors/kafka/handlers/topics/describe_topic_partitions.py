"""DescribeTopicPartitions: describe topics in pages, for clusters too large for one Metadata response (KIP-966).

A page starts at the cursor and has a limited number of partitions; it returns the cursor of the next page.
"""

from itertools import islice
from typing import Final

from tailrace.doors.kafka.authorized_operations import TOPIC_OPERATIONS
from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.handlers.topics.partition_states import partition_states
from tailrace.model.faults import Fault, InvalidRequest
from tailrace.model.topics import INTERNAL_TOPICS
from tailrace.wire.faults import error_of
from tailrace.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribedPartition,
    DescribedTopic,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from tailrace.wire.messages.metadata import PartitionMetadata

PAGE_MAX_PARTITIONS: Final = 2000


async def describe_topic_partitions(
    request: DescribeTopicPartitionsRequest, call: Call
) -> DescribeTopicPartitionsResponse:
    cursor = request.cursor
    names = sorted(dict.fromkeys(one.name for one in request.topics) or call.services.topics.all(call.caller))
    if cursor is not None:
        if cursor.partition < 0:
            fault = InvalidRequest(f"the cursor has the invalid partition {cursor.partition}")
            return DescribeTopicPartitionsResponse(topics=tuple(_refused(name, fault) for name in names))
        names = [name for name in names if name >= cursor.topic]
    room = max(1, min(request.response_partition_limit, PAGE_MAX_PARTITIONS))
    described: list[DescribedTopic] = []
    for name in names:
        if room == 0:
            return _page(described, Cursor(topic=name, partition=0))
        first = cursor.partition if cursor is not None and cursor.topic == name else 0
        topic, left = _describe(call, name, first, room)
        described.append(topic)
        room -= len(topic.partitions)
        if left:
            return _page(described, Cursor(topic=name, partition=first + len(topic.partitions)))
    return _page(described, None)


def _page(topics: list[DescribedTopic], following: Cursor | None) -> DescribeTopicPartitionsResponse:
    return DescribeTopicPartitionsResponse(topics=tuple(topics), next_cursor=following)


def _describe(call: Call, name: str, first: int, room: int) -> tuple[DescribedTopic, bool]:
    """A topic with at most `room` partitions, and whether it has more."""
    try:
        topic = call.services.topics.require(call.caller, name)
    except Fault as fault:
        return _refused(name, fault), False
    partitions = tuple(
        _partition(state) for state in islice(partition_states(call.services.topics, topic, first), room)
    )
    shown = DescribedTopic(
        name=name,
        topic_id=topic.id,
        is_internal=name in INTERNAL_TOPICS,
        partitions=partitions,
        topic_authorized_operations=TOPIC_OPERATIONS,
    )
    return shown, first + len(partitions) < len(topic.partitions)


def _partition(state: PartitionMetadata) -> DescribedPartition:
    return DescribedPartition(
        error_code=state.error_code,
        partition=state.partition,
        leader_id=state.leader_id,
        leader_epoch=state.leader_epoch,
        replicas=state.replicas,
        isr=state.isr,
        eligible_leader_replicas=(),
        last_known_eligible_leaders=(),
        offline_replicas=state.offline_replicas,
    )


def _refused(name: str, fault: Fault) -> DescribedTopic:
    return DescribedTopic(error_code=error_of(fault), name=name)
