"""`tailrace.client.producer`: each record is written or fails by its own deadline, whatever the producer waits for."""

import asyncio

import pytest

from tailrace.client.batching import BatchLimits
from tailrace.client.producer import NotWritten, Producer, ProducerOptions
from tests.unit.broker.simulated import Brokers, simulated
from tests.unit.client.simulated_client import SimulatedClient


@simulated(count=1)
async def test_records_expire_while_no_broker_answers_for_a_new_epoch(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1,))
    found = SimulatedClient(brokers.world, "b1")
    options = ProducerOptions(limits=BatchLimits(linger_s=3.0, delivery_s=5.0))

    async def work() -> None:
        async with Producer(found.cluster, options) as producer:
            first = await producer.send("t", b"0", partition=0)
            await producer.flush()
            assert (await first).offset == 0
            brokers.world.network.cut("c", "b1")
            began = found.cluster.driver.now()
            waiting = await producer.send("t", b"1", partition=0)
            await asyncio.sleep(2.0)
            producer._needs_epoch = True  # as after an answer that the broker does not know this producer
            joined = await producer.send("t", b"2", partition=0)  # to the same batch
            with pytest.raises(NotWritten, match="within 5 s: cannot get a producer id within") as failed:
                await waiting
            assert not failed.value.may_be_written
            assert isinstance(joined.exception(), NotWritten)
            assert found.cluster.driver.now() - began == pytest.approx(5.0, abs=0.1)
            brokers.world.network.heal()
            later = await producer.send("t", b"3", partition=0)
            await producer.flush()
            assert (await later).offset == 1

    await found.run(work())


@simulated(count=1)
async def test_a_producer_id_that_comes_late_serves_the_records_that_have_time_left(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1,))
    await brokers.make_topic("u", (1,))
    found = SimulatedClient(brokers.world, "b1")

    async def work() -> None:
        async with Producer(found.cluster, ProducerOptions(limits=BatchLimits(delivery_s=5.0))) as producer:
            brokers.world.network.cut("c", "b1")
            first = await producer.send("t", b"0", partition=0)
            await asyncio.sleep(4.0)
            second = await producer.send("u", b"1", partition=0)
            with pytest.raises(NotWritten, match="within 5 s"):
                await first
            brokers.world.network.heal()
            assert (await second).offset == 0

    await found.run(work())
