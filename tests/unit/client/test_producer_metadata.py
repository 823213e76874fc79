"""`tailrace.client.producer`: which partitions it knows, and which it refuses."""

import asyncio
from dataclasses import replace

import pytest

from tailrace.client.admin import create_partitions
from tailrace.client.producer import NotWritten, Producer, Written
from tests.unit.broker.simulated import Brokers, simulated
from tests.unit.client.simulated_client import QUICK, SimulatedClient


@simulated(count=1)
async def test_new_partitions_are_used_once_the_metadata_is_old(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1,))
    found = SimulatedClient(brokers.world, "b1", replace(QUICK, metadata_max_age_s=5.0))
    other = SimulatedClient(brokers.world, "b1", name="other")

    async def used(producer: Producer) -> set[int]:
        sent = [await producer.send("t", b"x", key=str(number).encode()) for number in range(20)]
        return {one.partition.partition for one in await asyncio.gather(*sent)}

    async def work() -> None:
        async with Producer(found.cluster) as producer:
            assert await used(producer) == {0}
            await other.run(create_partitions(other.cluster, "t", 3))
            assert await used(producer) == {0}
            await asyncio.sleep(5.0)
            brokers.world.network.isolate("b1")  # what is known is used while no broker answers
            sending = [await producer.send("t", b"x", key=b"k") for _ in range(3)]
            await asyncio.sleep(1.0)
            brokers.world.network.heal()
            await asyncio.gather(*sending)
            async with asyncio.timeout(10):
                while await used(producer) != {0, 1, 2}:
                    pass

    await found.run(work())


@simulated(count=1)
async def test_a_partition_that_does_not_exist_is_refused_soon(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1,))
    found = SimulatedClient(brokers.world, "b1")

    async def work() -> None:
        async with Producer(found.cluster) as producer:
            began = found.cluster.driver.now()
            wrong, right = await producer.send("t", b"x", partition=99), await producer.send("t", b"x", partition=0)
            with pytest.raises(NotWritten, match=r"cannot find partition 99 of topic t: it has 1 partition$"):
                await wrong
            assert found.cluster.driver.now() - began < 2 * QUICK.unknown_s
            assert (await right).offset == 0

    await found.run(work())


@simulated(count=1)
async def test_a_partition_that_was_just_added_is_found(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1,))
    found, other = SimulatedClient(brokers.world, "b1"), SimulatedClient(brokers.world, "b1", name="other")

    async def work() -> Written:
        async with Producer(found.cluster) as producer:
            early = await producer.send("t", b"x", partition=1)
            await asyncio.sleep(QUICK.unknown_s / 2)
            await other.run(create_partitions(other.cluster, "t", 2))
            return await early

    assert (await found.run(work())).offset == 0
