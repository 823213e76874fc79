"""Admin requests about share groups (KIP-932): members, start offsets, lag; and resetting a group's start offsets."""

from collections.abc import Mapping
from typing import NamedTuple

from tailrace.client.cluster import GROUP, Cluster
from tailrace.client.faults import check
from tailrace.client.group_admin import GroupDescription, MemberDescription, coordinator_id
from tailrace.client.offsets import by_topic
from tailrace.model.ids import BrokerId, PartitionName
from tailrace.wire.errors import Error
from tailrace.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    PartitionToAlter,
    TopicToAlter,
)
from tailrace.wire.messages.describe_share_group_offsets import DescribeShareGroupOffsetsRequest, GroupToDescribe
from tailrace.wire.messages.share_group_describe import DescribedShareGroup, ShareGroupDescribeRequest


class ShareOffsets(NamedTuple):
    """How far a share group is with a partition."""

    start: int | None  # everything before is processed; None: the group has not read the partition yet
    lag: int | None  # messages that are not processed; None: the broker does not know


async def describe_share_group(cluster: Cluster, group: str) -> GroupDescription | None:
    """None if there is no share group of this name."""
    what = f"describe share group {group}"

    async def ask() -> GroupDescription | None:
        request = ShareGroupDescribeRequest(group_ids=(group,), include_authorized_operations=False)
        (found,) = (await cluster.call_coordinator(GROUP, group, request)).groups
        if found.error_code == Error.GROUP_ID_NOT_FOUND:
            return None
        cluster.check_coordinated(GROUP, group, found.error_code, what, found.error_message)
        return _described(found, await coordinator_id(cluster, group))

    return await cluster.retry(what, ask)


def _described(found: DescribedShareGroup, coordinator: BrokerId) -> GroupDescription:
    members = tuple(
        MemberDescription(
            id=one.member_id,
            client_id=one.client_id,
            host=one.client_host,
            partitions=tuple(
                PartitionName(topic.topic_name, number)
                for topic in one.assignment.topic_partitions
                for number in topic.partitions
            ),
        )
        for one in found.members
    )
    return GroupDescription(
        id=found.group_id,
        type="share",
        state=found.group_state,
        assignor=found.assignor_name,
        coordinator=coordinator,
        members=members,
    )


async def share_group_offsets(cluster: Cluster, group: str) -> dict[PartitionName, ShareOffsets]:
    """All partitions that a share group has read, sorted; none if there is no such group."""
    what = f"read the offsets of share group {group}"

    async def ask() -> dict[PartitionName, ShareOffsets]:
        request = DescribeShareGroupOffsetsRequest(groups=(GroupToDescribe(group_id=group, topics=None),))
        (answer,) = (await cluster.call_coordinator(GROUP, group, request)).groups
        if answer.error_code == Error.GROUP_ID_NOT_FOUND:
            return {}
        cluster.check_coordinated(GROUP, group, answer.error_code, what, answer.error_message)
        found = {}
        for topic in answer.topics:
            for one in topic.partitions:
                cluster.check_coordinated(GROUP, group, one.error_code, what, one.error_message)
                name = PartitionName(topic.name, one.partition)
                found[name] = ShareOffsets(*(None if value < 0 else value for value in (one.start_offset, one.lag)))
        return {name: found[name] for name in sorted(found)}

    return await cluster.retry(what, ask)


async def alter_share_group_offsets(cluster: Cluster, group: str, starts: Mapping[PartitionName, int]) -> None:
    """Let a group without members go on at these offsets; what was released or delivered before is forgotten."""
    what = f"change the offsets of share group {group}"
    topics = tuple(
        TopicToAlter(
            name=topic,
            partitions=tuple(PartitionToAlter(partition=one.partition, start_offset=starts[one]) for one in ones),
        )
        for topic, ones in by_topic(starts).items()
    )

    async def ask() -> None:
        request = AlterShareGroupOffsetsRequest(group_id=group, topics=topics)
        answer = await cluster.call_coordinator(GROUP, group, request)
        cluster.check_coordinated(GROUP, group, answer.error_code, what, answer.error_message)
        for topic in answer.topics:
            for one in topic.partitions:
                check(one.error_code, f"{what}, {topic.name}-{one.partition}", one.error_message)

    await cluster.retry(what, ask)
