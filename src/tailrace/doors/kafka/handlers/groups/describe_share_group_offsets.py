"""DescribeShareGroupOffsets: where share groups are in their partitions, and how many records are not finished."""

from collections.abc import Mapping

from tailrace.broker.services.share_groups import ShareOffset
from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.handlers.by_topic import by_topic
from tailrace.doors.kafka.handlers.groups.topic_ids import topic_id
from tailrace.doors.kafka.request_limits import each, once, partitions_once
from tailrace.model.faults import Fault
from tailrace.model.ids import PartitionName
from tailrace.wire.faults import error_of
from tailrace.wire.messages.describe_share_group_offsets import (
    DescribedGroup,
    DescribedPartition,
    DescribedTopic,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
    GroupToDescribe,
)


async def describe_share_group_offsets(
    request: DescribeShareGroupOffsetsRequest, call: Call
) -> DescribeShareGroupOffsetsResponse:
    groups = {one.group_id: one for one in request.groups}
    once(groups)
    described = await each(groups.values(), lambda one: _described(call, one))
    return DescribeShareGroupOffsetsResponse(groups=tuple(described))


async def _described(call: Call, group: GroupToDescribe) -> DescribedGroup:
    wanted = None
    if group.topics is not None:
        named = partitions_once((topic.name, topic.partitions) for topic in group.topics)
        wanted = [PartitionName(topic, one) for topic, numbers in named.items() for one in numbers]
    try:
        offsets = await call.services.share_groups.offsets(call.caller, group.group_id, wanted)
    except Fault as fault:
        return DescribedGroup(group_id=group.group_id, error_code=error_of(fault), error_message=str(fault))
    return DescribedGroup(group_id=group.group_id, topics=_topics(call, offsets))


def _topics(call: Call, offsets: Mapping[PartitionName, ShareOffset | Fault]) -> tuple[DescribedTopic, ...]:
    return tuple(
        DescribedTopic(
            name=topic,
            topic_id=topic_id(call, topic),
            partitions=tuple(_partition(number, one) for number, one in some.items()),
        )
        for topic, some in by_topic(offsets).items()
    )


def _partition(number: int, one: ShareOffset | Fault) -> DescribedPartition:
    if isinstance(one, Fault):
        return DescribedPartition(partition=number, error_code=error_of(one), error_message=str(one))
    return DescribedPartition(partition=number, start_offset=one.start, lag=one.lag)
