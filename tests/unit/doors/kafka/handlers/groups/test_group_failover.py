"""Group coordinators in a cluster: which broker it is, and that the next one takes over the groups."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tailrace.broker.coordination.coordinator import partition_of
from tailrace.broker.partitions.partition import Partition
from tailrace.model.topics import OFFSETS_TOPIC
from tailrace.wire.errors import Error
from tailrace.wire.messages.find_coordinator import FindCoordinatorRequest
from tailrace.wire.messages.list_groups import ListGroupsRequest
from tests.unit.doors.kafka.clustered import Clustered, with_cluster
from tests.unit.doors.kafka.grouped import SETTINGS, Member, members
from tests.unit.doors.kafka.handlers.groups.test_offsets import commit, fetched
from tests.unit.doors.kafka.hostile import until

FEW = SETTINGS | {"offsets_topic_num_partitions": 3}


async def coordinator(cluster: Clustered, asked: int = 1) -> int:
    """The broker that coordinates group g, once it answers."""
    while True:
        (one,) = (await cluster[asked].call(FindCoordinatorRequest(coordinator_keys=("g",)), 6)).coordinators
        if one.error_code == 0:
            broker: int = one.node_id
            return broker
        assert one.error_code == Error.COORDINATOR_NOT_AVAILABLE


@asynccontextmanager
async def moved(cluster: Clustered, member: Member) -> AsyncIterator[tuple[int, Member]]:
    """Move the coordinator to another broker; returns the same member, connected to that broker."""
    old = await coordinator(cluster)
    new = next(one for one in cluster.ids if one != old)
    await cluster.move(OFFSETS_TOPIC, new, partition_of("g", 3))
    async with members(cluster[new], 1) as (again,):
        again.id, again.generation = member.id, member.generation
        while await again.heartbeat() == Error.COORDINATOR_LOAD_IN_PROGRESS:  # noqa: ASYNC110
            await asyncio.sleep(0)
        yield new, again


def replica(cluster: Clustered, broker: int) -> Partition:
    return cluster.replica(broker, OFFSETS_TOPIC, partition_of("g", 3))


@with_cluster(**FEW)
async def test_the_next_coordinator_goes_on(cluster: Clustered) -> None:
    await cluster.make_topic("t")
    old = await coordinator(cluster)
    await until(lambda: all(replica(cluster, one).leader == old for one in cluster.ids))
    assert len(replica(cluster, old).replica.voters) == 3
    assert {await coordinator(cluster, one) for one in cluster.ids} == {old}
    async with members(cluster[old], 1) as (one,):
        await one.begin()
        told: dict[str, Any] = {"generation_id_or_member_epoch": 1, "member_id": one.id}
        assert await commit(cluster[old], 7, **told) == 0
        async with moved(cluster, one) as (new, again):
            assert await one.heartbeat() == Error.NOT_COORDINATOR
            assert await commit(cluster[old], 8, **told) == Error.NOT_COORDINATOR
            assert await again.heartbeat() == 0
            assert (await again.sync()).assignment == b"all"
            assert (await fetched(cluster[new])).committed_offset == 7
            listed = await cluster[new].call(ListGroupsRequest(), 5)
            assert [(two.group_id, two.group_state) for two in listed.groups] == [("g", "Stable")]
            assert (await cluster[old].call(ListGroupsRequest(), 5)).groups == ()


@with_cluster(**FEW)
async def test_a_waiting_member_is_sent_to_the_next_coordinator(cluster: Clustered) -> None:
    old = await coordinator(cluster)
    async with members(cluster[old], 2) as (one, other):
        await one.begin()
        joining = asyncio.create_task(other.join(3))
        while await one.heartbeat() != Error.REBALANCE_IN_PROGRESS:  # noqa: ASYNC110
            await asyncio.sleep(0)
        async with moved(cluster, one) as (_, again):
            assert (await joining).error_code == Error.NOT_COORDINATOR
            assert await again.heartbeat() == 0  # the generation that is in the log goes on


def test_a_group_belongs_where_kafka_would_look_for_it() -> None:
    # java.lang.String.hashCode: of "group" 98629247, of "polygenelubricants" the smallest there is, beside letters
    # that take two units
    assert partition_of("group", 50) == 98629247 % 50
    assert partition_of("polygenelubricants", 50) == 0
    assert partition_of("", 50) == 0
    assert partition_of("\U0001d11e", 1000) == (0xD834 * 31 + 0xDD1E) % 1000
