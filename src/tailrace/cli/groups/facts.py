"""Description of a group: its members, committed offsets and lag."""

from collections.abc import Mapping
from typing import TypedDict

from tailrace.cli.failure import NotFound
from tailrace.client.cluster import Cluster
from tailrace.client.faults import Refused
from tailrace.client.group_admin import all_committed_offsets, describe_group
from tailrace.client.offsets import LATEST, by_topic, offsets_at
from tailrace.model.ids import PartitionName


class MemberFacts(TypedDict):
    member: str
    client: str
    host: str
    partitions: list[str]  # each as "topic-partition"


class OffsetFacts(TypedDict):
    topic: str
    partition: int
    committed: int | None  # None: assigned to a member, but nothing committed yet
    end: int | None  # None: the topic does not exist any longer
    lag: int | None  # None: `committed` or `end` is None
    owner: str | None  # the member that it is assigned to


class GroupFacts(TypedDict):
    group: str
    type: str  # classic, or consumer (KIP-848)
    state: str
    assignor: str
    coordinator: int
    members: list[MemberFacts]
    offsets: list[OffsetFacts]


async def group_facts(cluster: Cluster, group: str) -> GroupFacts:
    found = await describe_group(cluster, group)
    if found is None:
        raise NotFound(f"there is no group {group}.\n`tailrace group list` lists the groups.")
    members = [
        MemberFacts(
            member=one.id,
            client=one.client_id,
            host=one.host,
            partitions=[f"{part.topic}-{part.partition}" for part in sorted(one.partitions)],
        )
        for one in found.members
    ]
    owners = {part: one.id for one in found.members for part in one.partitions}
    return GroupFacts(
        group=group,
        type=found.type,
        state=words(found.state),
        assignor=found.assignor,
        coordinator=found.coordinator,
        members=members,
        offsets=await _lags(cluster, await all_committed_offsets(cluster, group), owners),
    )


def words(state: str) -> str:
    """The name of a state in plain words: PreparingRebalance is "preparing rebalance"."""
    return "".join(f" {one.lower()}" if one.isupper() else one for one in state).strip()


async def _lags(
    cluster: Cluster, committed: Mapping[PartitionName, int], owners: Mapping[PartitionName, str]
) -> list[OffsetFacts]:
    """The lag of every partition that has a committed offset or is assigned to a member."""
    partitions = sorted(dict.fromkeys((*committed, *owners)))
    ends: dict[PartitionName, int] = {}
    for ones in by_topic(partitions).values():
        try:
            ends |= await offsets_at(cluster, dict.fromkeys(ones, LATEST))
        except Refused:
            continue  # the topic was deleted
    return [_lag(one, committed.get(one), ends.get(one), owners.get(one)) for one in partitions]


def _lag(one: PartitionName, offset: int | None, end: int | None, owner: str | None) -> OffsetFacts:
    lag = None if offset is None or end is None else max(0, end - offset)
    return OffsetFacts(topic=one.topic, partition=one.partition, committed=offset, end=end, lag=lag, owner=owner)
