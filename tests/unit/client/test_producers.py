"""`tailrace.client.producers`: callers have producers of their own, and there are not too many of them."""

import asyncio

import pytest

from tailrace.client.batching import BatchLimits
from tailrace.client.producer import ProducerOptions, Written
from tailrace.client.producers import PoolLimits, Producers, TooManyProducers
from tailrace.model.ids import PartitionName
from tailrace.records.build import build_batch
from tailrace.records.record import NewRecord
from tailrace.wire.messages.produce import PartitionToProduce, ProduceRequest, TopicToProduce
from tests.unit.broker.simulated import Brokers, simulated
from tests.unit.client.simulated_client import SimulatedClient

ALICE, BOB, CAROL = "User:alice", "User:bob", "User:carol"
SMALL = ProducerOptions(limits=BatchLimits(batch_bytes=200, buffer_bytes=1000))
SOON_S = 0.5


async def write(producers: Producers, principal: str, topic: str) -> Written:
    with producers.of(principal) as producer:
        return await (await producer.send(topic, b"x", partition=0))


@simulated()
async def test_a_caller_whose_records_wait_for_replicas_delays_no_other(brokers: Brokers) -> None:
    await brokers.make_topic("waits", (1, 2))
    await brokers.make_topic("quick", (1,))
    found = SimulatedClient(brokers.world, "b1")

    async def fill(producers: Producers) -> None:
        """Send until the buffer is full, and longer."""
        with producers.of(ALICE) as producer:
            for _ in range(100):
                await producer.send("waits", b"x" * 100, partition=0)

    async def work() -> None:
        producers = Producers(found.cluster, SMALL)
        await asyncio.gather(write(producers, ALICE, "waits"), write(producers, BOB, "quick"))
        brokers.kill(2)
        filling = asyncio.ensure_future(fill(producers))
        await asyncio.sleep(0.1)
        for number in range(1, 4):
            async with asyncio.timeout(SOON_S):
                assert (await write(producers, BOB, "quick")).offset == number
        async with asyncio.timeout(SOON_S):
            assert (await write(producers, CAROL, "quick")).offset == 4
        assert not filling.done()
        await brokers.start(2)
        await filling
        await producers.close()

    await found.run(work())


async def fence(found: SimulatedClient, producer_id: int, epoch: int, topic: str) -> None:
    """Write as the next epoch of a producer: its own epoch is refused from now on."""
    records = build_batch(
        [NewRecord(value=b"y", timestamp=1)], producer_id=producer_id, producer_epoch=epoch + 1, base_sequence=0
    )
    part = PartitionToProduce(partition=0, records=records)
    request = ProduceRequest(acks=-1, timeout_ms=3000, topics=(TopicToProduce(name=topic, partitions=(part,)),))
    answer = await found.cluster.call(await found.cluster.leader(PartitionName(topic, 0)), request)
    assert answer.topics[0].partitions[0].error_code == 0


@simulated()
async def test_a_caller_that_is_fenced_fences_and_delays_no_other(brokers: Brokers) -> None:
    await brokers.make_topic("waits", (1, 2))
    await brokers.make_topic("quick", (1,))
    found = SimulatedClient(brokers.world, "b1")

    async def work() -> None:
        producers = Producers(found.cluster)
        for principal in (ALICE, BOB):
            await write(producers, principal, "quick")
        with producers.of(ALICE) as alice, producers.of(BOB) as bob:
            assert alice is not bob
            of_alice, of_bob = alice._identity, bob._identity
            assert of_alice is not None
            assert of_bob is not None
            assert of_alice.id != of_bob.id
            brokers.kill(2)
            waiting = await alice.send("waits", b"x", partition=0)  # no epoch begins before it is answered
            await asyncio.sleep(0.1)
            await fence(found, *of_alice, "quick")
            refused = await alice.send("quick", b"x", partition=0)
            for number in range(3, 6):
                async with asyncio.timeout(SOON_S):
                    assert (await write(producers, BOB, "quick")).offset == number
            assert bob._identity == of_bob
            assert not refused.done()
            await brokers.start(2)
            await waiting
            assert (await refused).offset == 6
        await producers.close()

    await found.run(work())


@simulated(count=1)
async def test_there_is_a_bound(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1,))
    found = SimulatedClient(brokers.world, "b1")

    async def work() -> None:
        producers = Producers(found.cluster, limits=PoolLimits(producers=2))
        await write(producers, ALICE, "t")
        await write(producers, BOB, "t")
        with producers.of(ALICE) as alice:
            await write(producers, CAROL, "t")  # instead of Bob's, which is idle
            assert len(producers) == 2
            brokers.world.network.cut("c", "b1")
            with producers.of(CAROL) as carol:
                unacknowledged = await carol.send("t", b"x", partition=0)
            with pytest.raises(TooManyProducers, match="2 principals are writing"), producers.of(BOB):
                pass
            brokers.world.network.heal()
            await unacknowledged
            await write(producers, BOB, "t")  # instead of Carol's
            with producers.of(ALICE) as still:
                assert still is alice
        await producers.close()
        assert len(producers) == 0

    await found.run(work())


@simulated(count=1)
async def test_idle_producers_are_closed_with_their_connections(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1,))
    found = SimulatedClient(brokers.world, "b1")

    async def work() -> None:
        producers = Producers(found.cluster, limits=PoolLimits(idle_s=5.0))
        await write(producers, ALICE, "t")
        with producers.of(BOB) as bob:
            await (await bob.send("t", b"x", partition=0))
            await asyncio.sleep(12.0)
            assert len(producers) == 1
            await (await bob.send("t", b"x", partition=0))
        await asyncio.sleep(12.0)
        assert len(producers) == 0
        assert brokers.world.network.open_connections == 0
        assert (await write(producers, BOB, "t")).offset == 3
        await producers.close()

    await found.run(work())
