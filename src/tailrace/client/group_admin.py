"""Admin requests about groups: list, describe and delete them, and read all their offsets.

Each broker lists the groups that it coordinates. A group of the consumer protocol (KIP-848) and a classic group are
described by different requests; the first tells which of them a group is.
"""

from collections.abc import Sequence
from typing import Final

from tailrace.client.admin import Results
from tailrace.client.cluster import GROUP, Cluster, Unanswered
from tailrace.client.faults import Refused, check
from tailrace.client.offsets import NO_OFFSET
from tailrace.groups.consumer_protocol import VERSION_LAYOUT, ConsumerProtocolAssignment, version_of
from tailrace.model.frozen import frozen
from tailrace.model.ids import NO_BROKER, BrokerId, PartitionName
from tailrace.wire.compile import decode
from tailrace.wire.errors import Error
from tailrace.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerMember,
    DescribedConsumerGroup,
)
from tailrace.wire.messages.delete_groups import DeleteGroupsRequest
from tailrace.wire.messages.describe_groups import DescribedGroup, DescribedMember, DescribeGroupsRequest
from tailrace.wire.messages.list_groups import ListedGroup, ListGroupsRequest
from tailrace.wire.messages.offset_fetch import OffsetFetchRequest
from tailrace.wire.primitives import WireError

DEAD: Final = "Dead"  # how a classic group is described that does not exist


@frozen
class MemberDescription:
    id: str
    client_id: str
    host: str
    partitions: tuple[PartitionName, ...]


@frozen
class GroupDescription:
    id: str
    type: str  # classic, consumer or share
    state: str  # as Kafka names it
    assignor: str
    coordinator: BrokerId
    members: tuple[MemberDescription, ...]


async def list_groups(cluster: Cluster) -> list[ListedGroup]:
    async def ask() -> list[ListedGroup]:
        await cluster.refresh()
        found: dict[str, ListedGroup] = {}
        for address in cluster.map.brokers.values():
            answer = await cluster.call(address, ListGroupsRequest())
            check(answer.error_code, f"list the groups of {address}")
            found |= {one.group_id: one for one in answer.groups}
        return [found[name] for name in sorted(found)]

    return await cluster.retry("list groups", ask)


async def describe_group(cluster: Cluster, group: str) -> GroupDescription | None:
    """None if there is no such group."""
    what = f"describe group {group}"

    async def ask() -> GroupDescription | None:
        if not cluster.map.brokers:
            await cluster.refresh()
        request = ConsumerGroupDescribeRequest(group_ids=(group,), include_authorized_operations=False)
        (found,) = (await cluster.call_coordinator(GROUP, group, request)).groups
        if found.error_code == Error.NONE:
            return _description(found, await coordinator_id(cluster, group))
        if found.error_code != Error.GROUP_ID_NOT_FOUND:
            cluster.check_coordinated(GROUP, group, found.error_code, what, found.error_message)
        answer = await cluster.call_coordinator(GROUP, group, DescribeGroupsRequest(groups=(group,)))
        (classic,) = answer.groups
        if classic.error_code == Error.GROUP_ID_NOT_FOUND or classic.group_state == DEAD:
            return None
        cluster.check_coordinated(GROUP, group, classic.error_code, what, classic.error_message)
        return _description(classic, await coordinator_id(cluster, group))

    return await cluster.retry(what, ask)


async def coordinator_id(cluster: Cluster, group: str) -> BrokerId:
    address = await cluster.coordinator(GROUP, group)
    return next((one for one, known in cluster.map.brokers.items() if known == address), NO_BROKER)


def _description(found: DescribedConsumerGroup | DescribedGroup, coordinator: BrokerId) -> GroupDescription:
    if isinstance(found, DescribedGroup):
        protocol, assignor = "classic", found.protocol_data
    else:
        protocol, assignor = "consumer", found.assignor_name
    return GroupDescription(
        id=found.group_id,
        type=protocol,
        state=found.group_state,
        assignor=assignor,
        coordinator=coordinator,
        members=tuple(
            MemberDescription(
                id=one.member_id, client_id=one.client_id, host=one.client_host, partitions=_partitions(one)
            )
            for one in found.members
        ),
    )


def _partitions(member: ConsumerMember | DescribedMember) -> tuple[PartitionName, ...]:
    if isinstance(member, DescribedMember):
        return _decoded(bytes(member.member_assignment))
    topics = member.assignment.topic_partitions
    return tuple(PartitionName(one.topic_name, number) for one in topics for number in one.partitions)


def _decoded(data: bytes) -> tuple[PartitionName, ...]:
    """The assignment of a classic member; no partitions if it is not that of a consumer."""
    if not data:
        return ()
    try:
        found, _ = decode(ConsumerProtocolAssignment, version_of(data), data, VERSION_LAYOUT.size)
    except WireError:
        return ()
    return tuple(PartitionName(one.topic, number) for one in found.assigned_partitions for number in one.partitions)


async def all_committed_offsets(cluster: Cluster, group: str) -> dict[PartitionName, int]:
    """Every committed offset of a group, sorted by topic and partition."""
    what = f"read the offsets of group {group}"

    async def ask() -> dict[PartitionName, int]:
        answer = await cluster.call_coordinator(GROUP, group, OffsetFetchRequest(group_id=group, topics=None))
        cluster.check_coordinated(GROUP, group, answer.error_code, what)
        found = {
            PartitionName(topic.name, one.partition): one.committed_offset
            for topic in answer.topics
            for one in topic.partitions
        }
        return {one: found[one] for one in sorted(found) if found[one] != NO_OFFSET}

    return await cluster.retry(what, ask)


async def delete_groups(cluster: Cluster, names: Sequence[str]) -> Results:
    """Delete groups without members, and their offsets; for each the `Refused`, or None.

    A group that a repeated request does not find any more was deleted by the first one, whose response was lost: see
    `admin`.
    """
    results: Results = {}
    for name in dict.fromkeys(names):
        try:
            await _delete_group(cluster, name)
            results[name] = None
        except Refused as refused:
            results[name] = refused
    return results


async def _delete_group(cluster: Cluster, name: str) -> None:
    may_be_deleted = False

    async def ask() -> None:
        nonlocal may_be_deleted
        try:
            (answer,) = (await cluster.call_coordinator(GROUP, name, DeleteGroupsRequest(groups_names=(name,)))).results
        except Unanswered:
            may_be_deleted = True
            raise
        if not (may_be_deleted and answer.error_code == Error.GROUP_ID_NOT_FOUND):
            cluster.check_coordinated(GROUP, name, answer.error_code, f"delete group {name}")

    await cluster.retry(f"delete group {name}", ask)
