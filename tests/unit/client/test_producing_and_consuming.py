"""`tailrace.client`: producer and consumer against real brokers in simulation, while brokers die and networks break."""

import asyncio
from typing import Any

import pytest

from tailrace.client import consumer as consumer_module
from tailrace.client.admin import create_partitions
from tailrace.client.batching import BatchLimits
from tailrace.client.consumer import Consumer, ConsumerOptions, Received
from tailrace.client.faults import ClientError, Refused
from tailrace.client.offsets import EARLIEST, LATEST, commit_offsets, committed_offsets, offsets_at
from tailrace.client.producer import NotWritten, Producer, ProducerOptions
from tailrace.client.runs import send_by_partition
from tailrace.model.faults import BatchTooLarge
from tailrace.model.ids import PartitionName
from tailrace.records.opened import open_batch
from tailrace.records.record import NewRecord, Record
from tests.unit.broker.simulated import Brokers, simulated
from tests.unit.client.simulated_client import SimulatedClient

PARTITION = PartitionName("t", 0)


def client(brokers: Brokers, **more: Any) -> SimulatedClient:
    return SimulatedClient(brokers.world, "b1,b2,b3", **more)


async def produce(found: SimulatedClient, first: int, count: int, **options: Any) -> list[int]:
    """Send numbers, all at once; returns their offsets."""

    async def work() -> list[int]:
        async with Producer(found.cluster, ProducerOptions(**options)) as producer:
            sent = [await producer.send("t", str(first + number).encode(), partition=0) for number in range(count)]
            return [(await one).offset for one in sent]

    return await found.run(work())


async def consume(found: SimulatedClient, count: int, start: int = 0, **options: Any) -> list[Received]:
    async def work() -> list[Received]:
        records: list[Received] = []
        async with Consumer(found.cluster, ConsumerOptions(**options)) as consumer:
            consumer.assign({PARTITION: start})
            async with asyncio.timeout(60):
                while len(records) < count:
                    records += await consumer.poll(max_records=7)
        return records

    return await found.run(work())


def numbers(records: list[Received]) -> list[int]:
    return [int(one.value or b"") for one in records]


@simulated()
async def test_what_is_written_is_read(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1, 2, 3))
    found = client(brokers)
    assert await produce(found, 0, 100) == list(range(100))
    records = await consume(found, 100)
    assert numbers(records) == list(range(100))
    assert [one.offset for one in records] == list(range(100))
    assert numbers(await consume(found, 40, start=60)) == list(range(60, 100))


@simulated()
async def test_runs_are_written_where_their_futures_say(brokers: Brokers) -> None:
    """Batches are small, so that runs are cut; records name a partition, or have a key, or neither."""
    await brokers.make_topic("t", (1, 2, 3))
    found = client(brokers)
    await found.run(create_partitions(found.cluster, "t", 3))
    records: list[tuple[int | None, NewRecord]] = [
        (
            (None, 0, 1, 2)[number % 4],
            NewRecord(str(number).encode(), b"k%d" % number if number % 8 else None, (), 5),
        )
        for number in range(60)
    ]
    options = ProducerOptions(limits=BatchLimits(batch_bytes=300, buffer_bytes=2_000))

    async def work() -> dict[tuple[int, int], int]:
        async with Producer(found.cluster, options) as producer:
            runs = [
                (begin, run)
                for begin, end in ((0, 6), (6, 12), (12, 60))  # the first two share batches, the third is cut
                for run in await send_by_partition(producer, "t", records[begin:end])
            ]
            written = [(begin, run, await run.written) for begin, run in runs]
        assert len(runs) > 9, "no run was cut"
        return {
            (first.partition.partition, first.offset + number): begin + place
            for begin, run, first in written
            for number, place in enumerate(run.places)
        }

    places = await found.run(work())
    assert sorted(places.values()) == list(range(60))
    for (partition, _), place in places.items():
        assert records[place][0] in (None, partition)

    async def read() -> list[Received]:
        received: list[Received] = []
        async with Consumer(found.cluster, ConsumerOptions()) as consumer:
            consumer.assign(dict.fromkeys((PartitionName("t", number) for number in range(3)), 0))
            async with asyncio.timeout(60):
                while len(received) < 60:
                    received += await consumer.poll(max_records=7)
        return received

    assert {(one.partition.partition, one.offset): int(one.value or b"") for one in await found.run(read())} == places


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_small_batches_keep_their_order(compression: str) -> None:
    @simulated(count=1)
    async def check(brokers: Brokers) -> None:
        await brokers.make_topic("t", (1,))
        found = SimulatedClient(brokers.world, "b1")
        limits = BatchLimits(batch_bytes=100, buffer_bytes=500)
        assert await produce(found, 0, 50, limits=limits, compression=compression) == list(range(50))
        assert numbers(await consume(found, 50)) == list(range(50))

    check()


@simulated()
async def test_every_record_is_written_once_while_leaders_die(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1, 2, 3))
    found = client(brokers)
    for turn, victim in enumerate((1, 2, 3)):
        leader = next(one for one in brokers.ids if brokers.replica(one, "t").leads)
        writing = asyncio.ensure_future(produce(found, turn * 50, 50, limits=BatchLimits(batch_bytes=60)))
        await brokers.elapse(0.004 * (turn + 1))
        brokers.kill(leader)
        offsets = await writing
        assert offsets == sorted(offsets), victim
        await brokers.start(leader)
        await brokers.until(lambda: any(brokers.replica(one, "t").leads for one in brokers.ids))
    assert numbers(await consume(found, 150)) == list(range(150))


@simulated()
async def test_a_producer_survives_lost_connections(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1, 2, 3))
    found = client(brokers)
    writing = asyncio.ensure_future(produce(found, 0, 200, limits=BatchLimits(batch_bytes=60)))
    for _ in range(20):
        await brokers.elapse(0.01)
        for broker in ("b1", "b2", "b3"):
            brokers.world.network.reset("c", broker)
    await writing
    assert numbers(await consume(found, 200)) == list(range(200))


@simulated(count=1)
async def test_records_fail_in_time_when_no_broker_answers(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1,))
    found = SimulatedClient(brokers.world, "b1")
    await produce(found, 0, 1)
    brokers.kill(1)
    began = brokers.world.loop.time()
    with pytest.raises(NotWritten, match="within 5 s"):
        await produce(found, 1, 1, limits=BatchLimits(delivery_s=5.0))
    assert brokers.world.loop.time() - began < 30


@simulated(count=1)
async def test_a_record_that_is_too_large_fails_alone(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1,), max_message_bytes=1000)
    found = SimulatedClient(brokers.world, "b1")

    async def work() -> list[object]:
        async with Producer(found.cluster, ProducerOptions(limits=BatchLimits(batch_bytes=50))) as producer:
            values = [b"a" * 20, b"b" * 5000, b"c" * 20, b"d" * 20]
            sent = [await producer.send("t", value, partition=0) for value in values]
            return list(await asyncio.gather(*sent, return_exceptions=True))

    first, large, second, third = await found.run(work())
    assert isinstance(large, NotWritten)
    assert not large.may_be_written
    assert [one.offset for one in (first, second, third)] == [0, 1, 2]  # type: ignore[attr-defined]
    assert [(one.value or b"")[:1] for one in await consume(found, 3)] == [b"a", b"c", b"d"]


@simulated(count=1, auto_create_topics_enable=False)
async def test_a_topic_that_does_not_exist(brokers: Brokers) -> None:
    found = SimulatedClient(brokers.world, "b1")
    with pytest.raises(NotWritten, match="UNKNOWN_TOPIC_OR_PARTITION"):
        await produce(found, 0, 1, limits=BatchLimits(delivery_s=2.0))


@simulated(count=1)
async def test_offsets_of_partitions_and_groups(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1,))
    found = SimulatedClient(brokers.world, "b1")
    await produce(found, 0, 10)
    cluster = found.cluster
    assert await found.run(offsets_at(cluster, {PARTITION: LATEST})) == {PARTITION: 10}
    assert await found.run(offsets_at(cluster, {PARTITION: EARLIEST})) == {PARTITION: 0}
    with pytest.raises(Refused, match="find partition 7 of t"):
        await found.run(offsets_at(cluster, {PartitionName("t", 7): LATEST}))
    assert await found.run(committed_offsets(cluster, "g", [PARTITION])) == {}
    await found.run(commit_offsets(cluster, "g", {PARTITION: 4}))
    assert await found.run(committed_offsets(cluster, "g", [PARTITION])) == {PARTITION: 4}


@simulated(count=1)
async def test_an_offset_out_of_range_is_an_error_or_is_reset(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1,))
    found = SimulatedClient(brokers.world, "b1")
    await produce(found, 0, 5)
    with pytest.raises(Refused, match="OFFSET_OUT_OF_RANGE"):
        await consume(found, 1, start=77)
    assert numbers(await consume(found, 5, start=77, reset="earliest")) == list(range(5))


@simulated(count=1)
async def test_a_fetch_that_waits_holds_up_no_producer(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1,))
    found = SimulatedClient(brokers.world, "b1")

    async def work() -> float:
        async with Consumer(found.cluster, ConsumerOptions(max_wait_ms=5_000)) as consumer:
            consumer.assign({PARTITION: 0})
            polling = asyncio.ensure_future(consumer.poll(timeout_s=10.0))
            await asyncio.sleep(0.5)
            began = found.cluster.driver.now()
            async with Producer(found.cluster) as producer:
                await (await producer.send("other", b"x"))
            took = found.cluster.driver.now() - began
            polling.cancel()
        return took

    assert await found.run(work()) < 1.0


@simulated(count=1)
async def test_a_batch_that_cannot_be_opened_ends_the_reading_once(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    await brokers.make_topic("t", (1,))
    found = SimulatedClient(brokers.world, "b1")
    await produce(found, 0, 2)
    await produce(found, 2, 1)

    def open_or_refuse(batch: memoryview) -> list[Record]:
        records = open_batch(batch)
        if records[0].offset >= 2:
            raise BatchTooLarge("it unpacks to more than is allowed")
        return records

    monkeypatch.setattr(consumer_module, "open_batch", open_or_refuse)

    async def work() -> None:
        async with Consumer(found.cluster) as consumer:
            consumer.assign({PARTITION: 0})
            records: list[Received] = []
            with pytest.raises(ClientError, match="cannot read the batch after offset 1: it unpacks"):  # noqa: PT012
                while True:
                    records += await consumer.poll()
            records += await consumer.poll(timeout_s=0.0)
            assert [one.offset for one in records] == [0, 1]
            assert consumer.positions == {PARTITION: 2}

    await found.run(work())
