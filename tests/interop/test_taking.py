"""Taking single messages with our own client, from our brokers and from Apache Kafka's: what doors stand on."""

import asyncio
import uuid

import pytest

from tailrace.client.admin import create_topics, group_settings
from tailrace.client.batching import BatchLimits
from tailrace.client.cluster import Cluster
from tailrace.client.faults import NotAcknowledged
from tailrace.client.producer import Producer, ProducerOptions
from tailrace.client.taking import Taker, Takers
from tailrace.wire.messages.create_topics import NewTopic
from tests.interop.share_groups import with_cluster

SINGLE = BatchLimits(batch_bytes=1)


@pytest.fixture
def topic() -> str:
    """A topic name that no other test uses; the group has the same name."""
    return f"t-{uuid.uuid4().hex[:8]}"


async def make(cluster: Cluster, topic: str, partitions: int = 1) -> None:
    new = NewTopic(name=topic, num_partitions=partitions, replication_factor=1)
    assert await create_topics(cluster, [new]) == {topic: None}


async def send(cluster: Cluster, topic: str, *values: int, partitions: int = 1) -> None:
    async with Producer(cluster, ProducerOptions(limits=SINGLE)) as producer:
        for value in values:
            await (await producer.send(topic, b"%d" % value, partition=value % partitions))


async def finish_all(taker: Taker) -> list[int]:
    found = []
    while (message := await taker.take()) is not None:
        await taker.accept(message)
        found.append(int(message.value or b"-1"))
    return found


async def until_unread(taker: Taker, count: int) -> None:
    """A commit is answered before its markers are written, so its messages may be counted a moment later."""
    async with asyncio.timeout(10.0):
        while await taker.unread() != count:  # noqa: ASYNC110 -- the broker sends no event for it
            await asyncio.sleep(0.02)


def test_messages_are_taken_in_order_and_only_once(sharing: str, topic: str) -> None:
    async def work(cluster: Cluster) -> None:
        await make(cluster, topic)
        await send(cluster, topic, *range(20))
        takers = Takers(cluster)
        taker = takers.of(topic, topic)
        assert await taker.unread() == 20
        shown = await taker.peek()
        assert shown is not None
        assert shown.value == b"0"
        assert await finish_all(taker) == list(range(20))
        assert await taker.take() is None
        await send(cluster, topic, 20)
        message = await taker.take(wait_s=10.0)
        assert message is not None
        await taker.release(message)
        message = await taker.take()
        assert message is not None
        assert (message.offset, message.delivery_count) == (20, 2)
        await taker.reject(message)
        with pytest.raises(NotAcknowledged):
            await taker.accept(message)
        assert await taker.take() is None
        await takers.close()

    with_cluster(sharing, work)


def test_two_doors_get_different_messages_of_all_partitions(sharing: str, topic: str) -> None:
    async def work(cluster: Cluster) -> None:
        await make(cluster, topic, 3)
        await send(cluster, topic, *range(30), partitions=3)
        doors = Takers(cluster), Takers(cluster)
        takers = [door.of(topic, topic) for door in doors]
        assert [await taker.unread() for taker in takers] == [30, 30]
        first, second = await asyncio.gather(*map(finish_all, takers))
        assert sorted(first + second) == list(range(30))
        for door in doors:
            await door.close()

    with_cluster(sharing, work)


def test_the_settings_that_the_broker_accepts_are_set(sharing: str, topic: str) -> None:
    async def work(cluster: Cluster) -> None:
        await make(cluster, topic)
        takers = Takers(cluster)
        assert await takers.of(topic, topic).take() is None
        found = {one.name: one.value for one in await group_settings(cluster, topic)}
        assert found["share.auto.offset.reset"] == "earliest"
        assert found["share.isolation.level"] == "read_committed"
        assert found["share.delivery.count.limit"] in ("0", "10")  # none, and the most that Apache Kafka has
        await takers.close()

    with_cluster(sharing, work)


def test_transactions_are_counted_and_taken_when_they_are_committed(sharing: str, topic: str) -> None:
    async def work(cluster: Cluster) -> None:
        await make(cluster, topic)
        takers = Takers(cluster)
        taker = takers.of(topic, topic)
        async with Producer(cluster, ProducerOptions(transactional_id=topic)) as producer:
            for value in range(4):
                await producer.begin()
                await (await producer.send(topic, b"%d" % value, partition=0))
                await (producer.abort() if value % 2 else producer.commit())
            await until_unread(taker, 2)
            await producer.begin()
            await producer.send(topic, b"9", partition=0)
            await producer.flush()
            assert await finish_all(taker) == [0, 2]
            assert await taker.peek() is None
            await producer.commit()
        message = await taker.take(wait_s=10.0)
        assert message is not None
        assert message.value == b"9"
        await taker.accept(message)
        assert await finish_all(taker) == []
        await takers.close()

    with_cluster(sharing, work)
