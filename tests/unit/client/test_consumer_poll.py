"""`Consumer.poll`: a caller that gives up loses no records, and another task can end it."""

import asyncio
from contextlib import suppress

from tailrace.client.consumer import Consumer, Received
from tailrace.client.producer import Producer
from tailrace.model.ids import PartitionName
from tests.unit.broker.simulated import Brokers, simulated
from tests.unit.client.simulated_client import SimulatedClient

FIRST, SECOND = PartitionName("t", 0), PartitionName("u", 0)


@simulated(count=1)
async def test_a_cancelled_poll_loses_no_records(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1,))
    await brokers.make_topic("u", (1,))
    found = SimulatedClient(brokers.world, "b1")

    async def work() -> list[Received]:
        async with Producer(found.cluster) as producer:
            for number in range(5):
                await (await producer.send("t", str(number).encode(), partition=0))
        async with Consumer(found.cluster) as consumer:
            consumer.assign({FIRST: 0, SECOND: 0})
            await consumer.poll(max_records=0, timeout_s=0.1)  # fetches
            brokers.world.network.cut("c", "b1")
            found.cluster.map.forget_leader(SECOND)  # so that the next poll asks for metadata, in vain
            consumer.seek(SECOND, 0)
            records: list[Received] = []
            for _ in range(2):  # the first has records, and need not wait; the second waits, and is cancelled
                with suppress(TimeoutError):
                    async with asyncio.timeout(0.5):
                        records += await consumer.poll(max_records=3)
            brokers.world.network.heal()
            async with asyncio.timeout(30):
                while len(records) < 5:
                    records += await consumer.poll()
            return records

    assert [one.offset for one in await found.run(work())] == list(range(5))


@simulated(count=1)
async def test_a_poll_ends_when_it_is_interrupted(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1,))
    found = SimulatedClient(brokers.world, "b1")

    async def work() -> float:
        async with Consumer(found.cluster) as consumer:
            consumer.assign({FIRST: 0})
            began = found.cluster.driver.now()
            asyncio.get_running_loop().call_later(0.2, consumer.interrupt)
            assert await consumer.poll(timeout_s=10.0) == []
            return found.cluster.driver.now() - began

    assert await found.run(work()) < 1.0
