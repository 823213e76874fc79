"""Share groups (KIP-932) with our own client: what a broker that has them promises, over real sockets."""

import asyncio
import subprocess
import sys
import uuid

import pytest

from tailrace.client.admin import change_group_settings
from tailrace.client.cluster import Cluster
from tailrace.client.faults import NotAcknowledged
from tailrace.client.producer import Producer, ProducerOptions
from tailrace.client.share_admin import alter_share_group_offsets, describe_share_group
from tailrace.client.share_consumer import ShareConsumer, ShareOptions
from tailrace.client.shares.message import Message, Outcome
from tailrace.model.ids import PartitionName
from tests.interop.share_groups import LOCK_S, create, lag, produce, with_cluster

EXPLICIT = ShareOptions(acknowledges="explicit", acquire_mode="record_limit")
HOLDER = """
import asyncio, sys
from tailrace.client import Queue

async def hold() -> None:
    async with Queue.connect(*sys.argv[1:]) as queue:
        message = await queue.receive()
        print(message.offset, flush=True)
        await asyncio.sleep(600)

asyncio.run(hold())
"""


@pytest.fixture
def topic() -> str:
    """A topic name that no other test uses; the group has the same name."""
    return f"t-{uuid.uuid4().hex[:8]}"


async def poll(consumer: ShareConsumer, count: int, at_once: int = 500) -> list[Message]:
    """So many messages, with as many polls as that takes."""
    found: list[Message] = []
    while len(found) < count:
        found += await consumer.poll(at_once)
    return found


def values(messages: list[Message]) -> list[int]:
    return [int(one.value or b"-1") for one in messages]


def test_what_is_accepted_or_rejected_is_gone_and_what_is_released_comes_again(sharing: str, topic: str) -> None:
    async def work(cluster: Cluster) -> None:
        await create(cluster, topic)
        await produce(cluster, topic, 4)
        async with ShareConsumer(cluster, topic, [topic], EXPLICIT) as consumer:
            first = await poll(consumer, 4)
            assert values(first) == [0, 1, 2, 3]
            assert [one.delivery_count for one in first] == [1] * 4
            assert {(one.partition, one.key, one.headers) for one in first} == {(PartitionName(topic, 0), None, ())}
            await consumer.settle(first[0], Outcome.ACCEPT)
            await consumer.settle(first[1], Outcome.REJECT)
            consumer.acknowledge(first[2], Outcome.RELEASE)
            consumer.acknowledge(first[3], Outcome.RELEASE)
            again = await poll(consumer, 2)
            assert [(one.offset, one.delivery_count) for one in again] == [(2, 2), (3, 2)]
            for one in again:
                consumer.acknowledge(one)
            await consumer.commit()
            assert await consumer.poll(timeout_s=1.0) == []
            with pytest.raises(NotAcknowledged, match="acknowledged before"):
                consumer.acknowledge(again[0])
        assert await lag(cluster, topic) == 0

    with_cluster(sharing, work)


def test_a_poll_accepts_what_the_last_one_returned(sharing: str, topic: str) -> None:
    async def work(cluster: Cluster) -> None:
        await create(cluster, topic)
        await produce(cluster, topic, 30)
        async with ShareConsumer(cluster, topic, [topic]) as consumer:
            assert values(await poll(consumer, 30)) == list(range(30))
            assert await consumer.poll(timeout_s=0.5) == []
            await consumer.commit()
            assert await lag(cluster, topic) == 0

    with_cluster(sharing, work)


def test_closing_releases_what_was_not_decided(sharing: str, topic: str) -> None:
    async def work(cluster: Cluster) -> None:
        await create(cluster, topic)
        await produce(cluster, topic, 3)
        async with ShareConsumer(cluster, topic, [topic], EXPLICIT) as consumer:
            consumer.acknowledge((await poll(consumer, 3))[1])
        group = await describe_share_group(cluster, topic)
        assert group is not None
        assert group.members == ()
        async with ShareConsumer(cluster, topic, [topic], EXPLICIT) as consumer:
            again = await poll(consumer, 2)
            assert [(one.offset, one.delivery_count) for one in again] == [(0, 2), (2, 2)]

    with_cluster(sharing, work)


def test_a_poll_gets_no_more_records_than_it_asks_for(sharing: str, topic: str) -> None:
    async def work(cluster: Cluster) -> None:
        await create(cluster, topic)
        await produce(cluster, topic, 20)  # one batch
        async with (
            ShareConsumer(cluster, topic, [topic], EXPLICIT) as one,
            ShareConsumer(cluster, topic, [topic], EXPLICIT) as other,
        ):
            assert values(await poll(one, 3, at_once=3)) == [0, 1, 2]
            assert values(await poll(other, 17)) == list(range(3, 20))
            assert not any(await asyncio.gather(one.poll(timeout_s=0.5), other.poll(timeout_s=0.5)))

    with_cluster(sharing, work)


def test_two_members_share_one_partition(sharing: str, topic: str) -> None:
    async def work(cluster: Cluster) -> None:
        await create(cluster, topic)
        await produce(cluster, topic, 200)
        seen: dict[str, list[int]] = {"one": [], "other": []}

        async def consume(name: str) -> None:
            async with ShareConsumer(cluster, topic, [topic], EXPLICIT) as consumer:
                while sum(map(len, seen.values())) < 200:
                    for message in await consumer.poll(5, 0.2):
                        await consumer.settle(message)
                        seen[name] += values([message])

        await asyncio.gather(consume("one"), consume("other"))
        assert sorted(seen["one"] + seen["other"]) == list(range(200))
        assert all(seen.values())

    with_cluster(sharing, work)


def test_a_killed_member_gives_its_messages_to_the_others(sharing: str, topic: str) -> None:
    async def work(cluster: Cluster) -> None:
        await create(cluster, topic)
        await produce(cluster, topic, 1)
        holder = await asyncio.create_subprocess_exec(
            sys.executable, "-c", HOLDER, sharing, topic, stdout=subprocess.PIPE
        )
        assert holder.stdout is not None
        assert await holder.stdout.readline() == b"0\n"
        async with ShareConsumer(cluster, topic, [topic], EXPLICIT) as consumer:
            assert await consumer.poll(timeout_s=1.0) == []
            holder.kill()
            await holder.wait()
            (message,) = await poll(consumer, 1)
            assert (message.offset, message.delivery_count) == (0, 2)
            await consumer.settle(message)

    with_cluster(sharing, work)


def test_a_lock_that_is_renewed_does_not_end(sharing: str, topic: str) -> None:
    async def work(cluster: Cluster) -> None:
        await create(cluster, topic, lock_s=LOCK_S)
        await produce(cluster, topic, 2)
        renewing = ShareOptions(acknowledges="explicit", acquire_mode="record_limit", renews_locks=True)
        async with (
            ShareConsumer(cluster, topic, [topic], renewing) as one,
            ShareConsumer(cluster, topic, [topic], EXPLICIT) as other,
        ):
            (kept,) = await poll(one, 1, at_once=1)
            assert kept.lock_s == LOCK_S
            (ended,) = await poll(other, 1, at_once=1)
            until = ended.locked_until
            await other.renew([ended])
            assert ended.locked_until > until
            (again,) = await poll(other, 1)  # the lock that is not renewed any more
            assert (again.offset, again.delivery_count) == (ended.offset, 2)
            with pytest.raises(NotAcknowledged, match="its lock has ended"):
                await other.settle(ended)
            await other.settle(again)
            assert await other.poll(timeout_s=2 * LOCK_S) == []
            await one.settle(kept)
        assert await lag(cluster, topic) == 0

    with_cluster(sharing, work)


def test_one_lock_that_has_ended_does_not_spoil_the_acknowledgements_of_others(sharing: str, topic: str) -> None:
    async def work(cluster: Cluster) -> None:
        await create(cluster, topic, lock_s=LOCK_S)
        await produce(cluster, topic, 12)
        async with ShareConsumer(cluster, topic, [topic], EXPLICIT) as consumer:
            messages = await poll(consumer, 12)
            late = messages.pop(5)
            ended = late.locked_until + 0.5
            late.locked_until += 60  # as if this clock ran slow: only the broker knows that the lock has ended
            while cluster.driver.now() < ended:
                await consumer.renew(messages)
                await asyncio.sleep(LOCK_S / 4)
            for one in (*messages, late):
                consumer.acknowledge(one)
            with pytest.raises(NotAcknowledged, match=f"cannot accept offset 5 of {topic}-0: INVALID_RECORD_STATE$"):
                await consumer.commit()
            (again,) = await poll(consumer, 1)
            assert again.offset == late.offset
            await consumer.settle(again)
        assert await lag(cluster, topic) == 0

    with_cluster(sharing, work)


def test_a_message_is_not_delivered_more_often_than_the_limit(sharing: str, topic: str) -> None:
    async def work(cluster: Cluster) -> None:
        await create(cluster, topic)
        await change_group_settings(cluster, topic, {"share.delivery.count.limit": "3"})
        await produce(cluster, topic, 1)
        async with ShareConsumer(cluster, topic, [topic], EXPLICIT) as consumer:
            for count in (1, 2, 3):
                (message,) = await poll(consumer, 1)
                assert message.delivery_count == count
                await consumer.settle(message, Outcome.RELEASE)
            assert await consumer.poll(timeout_s=1.0) == []
        assert await lag(cluster, topic) == 0

    with_cluster(sharing, work)


def test_offsets_without_records_are_acknowledged_too(sharing: str, topic: str) -> None:
    async def work(cluster: Cluster) -> None:
        await create(cluster, topic)
        async with Producer(cluster, ProducerOptions(transactional_id=topic)) as producer:
            for number in range(3):
                await producer.begin()
                await producer.send(topic, b"%d" % number, partition=0)
                await producer.commit()  # a control record follows each record
        async with ShareConsumer(cluster, topic, [topic], EXPLICIT) as consumer:
            messages = await poll(consumer, 3)
            assert [one.offset for one in messages] == [0, 2, 4]
            for one in messages:
                await consumer.settle(one)
            while await lag(cluster, topic):
                await consumer.poll(timeout_s=0.1)

    with_cluster(sharing, work)


def test_offsets_of_a_group_without_members_can_be_altered(sharing: str, topic: str) -> None:
    async def work(cluster: Cluster) -> None:
        await create(cluster, topic)
        await produce(cluster, topic, 5)
        async with ShareConsumer(cluster, topic, [topic]) as consumer:
            await poll(consumer, 5)
            assert await consumer.poll(timeout_s=0.1) == []
        await alter_share_group_offsets(cluster, topic, {PartitionName(topic, 0): 3})
        async with ShareConsumer(cluster, topic, [topic]) as consumer:
            assert values(await poll(consumer, 2)) == [3, 4]

    with_cluster(sharing, work)
