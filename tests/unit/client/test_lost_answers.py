"""`tailrace.client.admin`: what a call returns when the answer to its first request is lost, and the work was done."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from tailrace.client.admin import create_partitions, create_topics, delete_topics
from tailrace.client.faults import Refused
from tailrace.client.group_admin import delete_groups, list_groups
from tailrace.client.offsets import commit_offsets, committed_offsets
from tailrace.model.ids import PartitionName
from tailrace.wire.errors import Error
from tailrace.wire.messages.create_topics import NewTopic
from tests.unit.broker.simulated import Brokers, simulated
from tests.unit.client.simulated_client import SimulatedClient

PARTITION = PartitionName("t", 0)
NEW = NewTopic(name="new", num_partitions=2, replication_factor=1)


async def losing_the_answer(
    brokers: Brokers, found: SimulatedClient, work: Coroutine[Any, Any, Any], done: Callable[[], Awaitable[None]]
) -> Any:
    """Do some work whose first request is executed, which `done` waits for, while its answer never arrives."""
    await found.run(found.cluster.refresh())
    brokers.world.network.cut("b1", "c", one_way=True)
    working = asyncio.ensure_future(found.run(work))
    await done()
    assert not working.done()
    brokers.world.network.reset("c", "b1")
    brokers.world.network.heal()
    return await working


async def until_partitions(brokers: Brokers, topic: str, count: int) -> None:
    await brokers.until(lambda: partitions(brokers, topic) == count)


def partitions(brokers: Brokers, topic: str) -> int:
    found = brokers[1].hosted.image.topics.get(topic)
    return 0 if found is None else len(found.partitions)


@simulated(count=1)
async def test_a_topic_that_was_created_is_created(brokers: Brokers) -> None:
    found = SimulatedClient(brokers.world, "b1")
    work = create_topics(found.cluster, [NEW])
    assert await losing_the_answer(brokers, found, work, lambda: until_partitions(brokers, "new", 2)) == {"new": None}
    again = (await found.run(create_topics(found.cluster, [NEW])))["new"]
    assert again is not None
    assert again.error is Error.TOPIC_ALREADY_EXISTS


@simulated(count=1)
async def test_a_topic_that_was_deleted_is_deleted(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1,))
    found = SimulatedClient(brokers.world, "b1")
    work = delete_topics(found.cluster, ["t"])
    assert await losing_the_answer(brokers, found, work, lambda: until_partitions(brokers, "t", 0)) == {"t": None}
    again = (await found.run(delete_topics(found.cluster, ["t"])))["t"]
    assert again is not None
    assert again.error is Error.UNKNOWN_TOPIC_OR_PARTITION


@simulated(count=1)
async def test_partitions_that_were_added_are_added(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1,))
    found = SimulatedClient(brokers.world, "b1")
    work = create_partitions(found.cluster, "t", 3)
    await losing_the_answer(brokers, found, work, lambda: until_partitions(brokers, "t", 3))
    with pytest.raises(Refused, match="partitions"):
        await found.run(create_partitions(found.cluster, "t", 3))


@simulated(count=1)
async def test_a_repeated_request_for_fewer_partitions_is_refused(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1,))
    found, other = SimulatedClient(brokers.world, "b1"), SimulatedClient(brokers.world, "b1", name="d")

    async def add_more() -> None:
        await until_partitions(brokers, "t", 3)
        await other.run(create_partitions(other.cluster, "t", 5))

    with pytest.raises(Refused, match="partitions"):
        await losing_the_answer(brokers, found, create_partitions(found.cluster, "t", 3), add_more)


@simulated(count=1)
async def test_a_group_that_was_deleted_is_deleted(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1,))
    found, other = SimulatedClient(brokers.world, "b1"), SimulatedClient(brokers.world, "b1", name="d")
    await found.run(commit_offsets(found.cluster, "g", {PARTITION: 7}))

    async def gone() -> None:
        async with asyncio.timeout(10):
            while await other.run(committed_offsets(other.cluster, "g", [PARTITION])):
                await brokers.elapse(0.01)

    assert await losing_the_answer(brokers, found, delete_groups(found.cluster, ["g"]), gone) == {"g": None}
    assert await found.run(list_groups(found.cluster)) == []
    again = (await found.run(delete_groups(found.cluster, ["g"])))["g"]
    assert again is not None
    assert again.error is Error.GROUP_ID_NOT_FOUND
