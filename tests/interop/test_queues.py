"""`tailrace.client.Queue` and its blocking form, on brokers with share groups."""

import asyncio
import threading
import uuid

import pytest

from tailrace.client import BlockingQueue, Queue, QueueEmpty, QueueOptions, Reject
from tailrace.client.admin import delete_topics
from tailrace.client.cluster import Cluster
from tailrace.client.shares.message import Outcome
from tests.interop.share_groups import LOCK_S, create, lag, produce, with_cluster


class HandlerFailed(Exception):
    pass


@pytest.fixture
def topic() -> str:
    """A topic name that no other test uses; the group has the same name."""
    return f"q-{uuid.uuid4().hex[:8]}"


async def fail(queue: Queue) -> None:
    async with queue.take() as message:
        assert (message.value, message.key, message.header("h")) == (b"0", b"k", b"v")
        assert message.delivery_count == 1
        raise HandlerFailed


def test_a_block_accepts_releases_or_rejects(sharing: str, topic: str) -> None:
    async def work(cluster: Cluster) -> None:
        await create(cluster, topic)
        async with Queue(cluster, topic) as queue:
            assert (await queue.send(b"0", key=b"k", headers=(("h", b"v"),))).offset == 0
            with pytest.raises(HandlerFailed):
                await fail(queue)
            async with queue.take() as message:
                assert (message.value, message.delivery_count) == (b"0", 2)
            await queue.send(b"1")
            async with queue.take() as message:
                raise Reject("it is no number")
            await queue.send(b"2")
            async with queue.take() as message:
                assert message.value == b"2"
                await queue.settle(message, Outcome.RELEASE)
            async with queue.take() as message:
                assert (message.value, message.delivery_count) == (b"2", 2)
            with pytest.raises(QueueEmpty):
                async with queue.take(timeout_s=0.5):
                    pytest.fail("there is nothing to take")
        assert await lag(cluster, topic) == 0

    with_cluster(sharing, work)


def test_a_handler_may_take_longer_than_a_lock(sharing: str, topic: str) -> None:
    async def work(cluster: Cluster) -> None:
        await create(cluster, topic, lock_s=LOCK_S)
        await produce(cluster, topic, 1)
        async with Queue(cluster, topic) as slow, Queue(cluster, topic) as other, slow.take():
            with pytest.raises(QueueEmpty):
                async with other.take(timeout_s=2.5 * LOCK_S):
                    pytest.fail("another handler has it")
        assert await lag(cluster, topic) == 0

    with_cluster(sharing, work)


@pytest.mark.parametrize("prefetch", [0, 8])
def test_workers_share_all_messages(sharing: str, topic: str, prefetch: int) -> None:
    async def work(cluster: Cluster) -> None:
        await create(cluster, topic, partitions=3)
        options = QueueOptions(prefetch=prefetch)
        async with Queue(cluster, topic, options) as one, Queue(cluster, topic, options) as other:
            await asyncio.gather(*(one.send(b"%d" % number, partition=number % 3) for number in range(300)))
            seen: list[int] = []

            async def handle(queue: Queue) -> None:
                while len(seen) < 300:
                    try:
                        async with queue.take(timeout_s=0.5) as message:
                            seen.append(int(message.value or b"-1"))
                    except QueueEmpty:
                        continue

            await asyncio.gather(*(handle(queue) for queue in (one, other) for _ in range(5)))
        assert sorted(seen) == list(range(300))

    with_cluster(sharing, work)


def test_what_comes_after_a_taker_gave_up_is_for_the_next_one(sharing: str, topic: str) -> None:
    async def work(cluster: Cluster) -> None:
        await create(cluster, topic)
        async with Queue(cluster, topic) as queue:
            with pytest.raises(QueueEmpty):
                await queue.receive(timeout_s=2.0)
            for number in range(20):
                giving_up = asyncio.create_task(queue.receive())
                sent = await queue.send(b"%d" % number)
                if giving_up.done():
                    message = giving_up.result()
                else:
                    giving_up.cancel()
                    message = await queue.receive()
                assert (message.offset, message.delivery_count) == (sent.offset, 1)
                await queue.settle(message, Outcome.ACCEPT)

    with_cluster(sharing, work)


def test_what_nobody_takes_is_released(sharing: str, topic: str) -> None:
    async def work(cluster: Cluster) -> None:
        await create(cluster, topic, lock_s=LOCK_S)
        async with Queue(cluster, topic) as idle, Queue(cluster, topic) as busy:
            with pytest.raises(QueueEmpty):
                await idle.receive(timeout_s=1.0)
            giving_up = asyncio.create_task(idle.receive())
            await asyncio.sleep(0)  # its fetch is under way
            giving_up.cancel()
            await produce(cluster, topic, 1)
            message = await busy.receive()  # of the first delivery, if the fetch came back before
            assert message.delivery_count <= 2
            await busy.settle(message, Outcome.ACCEPT)

    with_cluster(sharing, work)


def test_threads_without_an_event_loop(sharing: str, topic: str) -> None:
    with_cluster(sharing, lambda cluster: create(cluster, topic, lock_s=LOCK_S))
    seen: list[bytes | None] = []
    with BlockingQueue(sharing, topic) as queue:
        for number in range(10):
            queue.send(b"%d" % number)

        def handle() -> None:
            while len(seen) < 10:
                try:
                    with queue.take(timeout_s=0.5) as message:
                        if message.value == b"3" and message.delivery_count == 1:
                            raise HandlerFailed
                        if message.value == b"4":
                            seen.append(message.value)
                            raise Reject
                        seen.append(message.value)
                except (QueueEmpty, HandlerFailed):
                    continue

        threads = [threading.Thread(target=handle) for _ in range(3)]
        for one in threads:
            one.start()
        for one in threads:
            one.join(30)
    assert sorted(one or b"" for one in seen) == [b"%d" % number for number in range(10)]

    async def check(cluster: Cluster) -> None:
        assert await lag(cluster, topic) == 0

    with_cluster(sharing, check)


async def finish_without_accepting(queue: Queue) -> None:
    """What a worker leaves behind that dies after its work."""
    message = await queue.receive(20.0)
    assert queue._finished is not None
    await queue._finished.add(message)
    await queue.close()


def test_what_was_finished_before_a_crash_is_not_processed_again(sharing: str, topic: str) -> None:
    async def work(cluster: Cluster) -> None:
        await create(cluster, topic)
        await produce(cluster, topic, 2)
        options = QueueOptions(remembers_s=600)
        await finish_without_accepting(Queue(cluster, topic, options))
        async with Queue(cluster, topic, options) as queue:
            async with queue.take(20.0) as message:
                assert message.value == b"1"
            with pytest.raises(QueueEmpty):
                await queue.receive(0.5)
        assert await lag(cluster, topic) == 0

    with_cluster(sharing, work)


def test_what_was_finished_is_remembered_for_a_time_only(sharing: str, topic: str) -> None:
    async def work(cluster: Cluster) -> None:
        await create(cluster, topic)
        await produce(cluster, topic, 1)
        options = QueueOptions(remembers_s=1)
        async with Queue(cluster, topic, options) as queue:
            async with queue.take(20.0) as message:
                assert message.offset == 0
            await produce(cluster, topic, 1)
            await finish_without_accepting(Queue(cluster, topic, options))
            finished_at = cluster.driver.now()
            while cluster.driver.now() < finished_at + 1.1:  # noqa: ASYNC110 -- until it is forgotten
                await asyncio.sleep(0.05)
            async with queue.take(20.0) as message:
                assert (message.offset, message.delivery_count) == (1, 2)
        assert await lag(cluster, topic) == 0

    with_cluster(sharing, work)


def test_a_topic_that_is_made_anew_has_nothing_finished(sharing: str, topic: str) -> None:
    async def work(cluster: Cluster) -> None:
        options = QueueOptions(remembers_s=600)
        for _ in range(2):
            await create(cluster, topic)
            await produce(cluster, topic, 1)
            async with Queue(cluster, topic, options) as queue, queue.take(20.0) as message:
                assert (message.value, message.offset) == (b"0", 0)
            assert await delete_topics(cluster, [topic]) == {topic: None}
            await cluster.refresh({topic: None})

    with_cluster(sharing, work)
