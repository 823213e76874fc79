"""`tailrace.client.producer` with transactions, against real coordinators in simulation."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tailrace.client.batching import BatchLimits
from tailrace.client.faults import ClientError
from tailrace.client.offsets import committed_offsets
from tailrace.client.producer import NotWritten, Producer, ProducerOptions
from tailrace.model.ids import PartitionName
from tests.unit.broker.simulated import Brokers, simulated
from tests.unit.client.simulated_client import SimulatedClient
from tests.unit.client.test_producing_and_consuming import consume, numbers

INPUT = PartitionName("input", 0)


async def with_producer(
    found: SimulatedClient, work: Callable[[Producer], Awaitable[None]], name: str = "x", **options: object
) -> None:
    async def run() -> None:
        async with Producer(found.cluster, ProducerOptions(transactional_id=name, **options)) as producer:  # type: ignore[arg-type]
            await work(producer)

    await found.run(run())


async def send(producer: Producer, first: int, count: int) -> None:
    for number in range(first, first + count):
        await producer.send("t", str(number).encode(), partition=0)


def client(brokers: Brokers, name: str = "c") -> SimulatedClient:
    return SimulatedClient(brokers.world, ",".join(f"b{one}" for one in brokers.ids), name=name)


@simulated(count=1)
async def test_only_what_was_committed_is_read(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1,))
    found = client(brokers)

    async def work(producer: Producer) -> None:
        for turn in range(4):
            await producer.begin()
            await send(producer, 10 * turn, 10)
            await (producer.abort() if turn % 2 else producer.commit())

    await with_producer(found, work)
    committed = [*range(10), *range(20, 30)]
    assert numbers(await consume(found, 20)) == committed
    everything = numbers(await consume(found, 20, reads_committed=False))
    assert [one for one in everything if one in committed] == committed[
        : len([o for o in everything if o in committed])
    ]


@simulated(count=1)
async def test_offsets_are_committed_with_the_transaction(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1,))
    await brokers.make_topic("input", (1,))
    found = client(brokers)

    async def work(producer: Producer) -> None:
        for offset, commits in ((5, False), (7, True)):
            await producer.begin()
            await send(producer, offset, 1)
            await producer.commit_offsets("g", {INPUT: offset})
            await (producer.commit() if commits else producer.abort())

    await with_producer(found, work)
    assert await found.run(committed_offsets(found.cluster, "g", [INPUT], stable=True)) == {INPUT: 7}


@simulated(count=1)
async def test_a_producer_that_was_fenced_can_do_nothing(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1,))
    found, other = client(brokers), client(brokers, "d")
    ready, taken = asyncio.Event(), asyncio.Event()

    async def first(producer: Producer) -> None:
        await producer.begin()
        await send(producer, 0, 5)
        await producer.flush()
        ready.set()
        await taken.wait()
        with pytest.raises(ClientError):
            await producer.commit()
        with pytest.raises(ClientError):
            await producer.abort()
        assert "another producer uses x" in producer.fenced
        with pytest.raises(NotWritten, match="another producer uses x"):
            await send(producer, 5, 1)

    async def second(producer: Producer) -> None:
        await ready.wait()
        await producer.begin()
        await send(producer, 100, 5)
        await producer.commit()
        taken.set()

    await asyncio.gather(with_producer(found, first), with_producer(other, second))
    assert numbers(await consume(found, 5)) == list(range(100, 105))


@simulated(count=1)
async def test_a_transaction_with_a_record_that_failed_must_be_aborted(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1,), max_message_bytes=1000)
    found = client(brokers)

    async def work(producer: Producer) -> None:
        await producer.begin()
        await send(producer, 0, 5)
        await producer.flush()
        await producer.send("t", b"x" * 5000, partition=0)
        with pytest.raises(NotWritten, match=r"can only be aborted: .*exceeds max\.message\.bytes"):
            await producer.commit()
        await producer.abort()
        await producer.begin()
        await send(producer, 10, 5)
        await producer.commit()

    await with_producer(found, work)
    assert numbers(await consume(found, 5)) == list(range(10, 15))


@simulated()
async def test_transactions_are_whole_while_brokers_die(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1, 2, 3))
    found = SimulatedClient(brokers.world, "b1,b2,b3")
    committed: list[int] = []
    done = asyncio.Event()

    async def work(producer: Producer) -> None:
        for turn in range(12):
            await producer.begin()
            await send(producer, 10 * turn, 10)
            try:
                await producer.commit()
            except NotWritten:
                await producer.abort()
            else:
                committed.extend(range(10 * turn, 10 * turn + 10))
        done.set()

    working = asyncio.ensure_future(with_producer(found, work, limits=BatchLimits(batch_bytes=100)))
    victims = [1, 2, 3, 1]
    while not done.is_set() and victims:
        await brokers.elapse(0.05)
        victim = victims.pop(0)
        brokers.kill(victim)
        await brokers.elapse(0.3)
        await brokers.start(victim)
    await working
    assert len(committed) >= 60
    assert numbers(await consume(found, len(committed))) == committed
