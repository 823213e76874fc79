"""Long-polling fetches: they wait for min_bytes, not longer than max_wait_ms, and do not read needlessly meanwhile."""

import asyncio
import gc

import pytest

from tailrace.broker.partitions.partition import Partition
from tailrace.broker.services.reader import Fetch
from tailrace.client.faults import ConnectionLost
from tailrace.log.log import Read
from tailrace.model.limits import MiB
from tailrace.records.build import build_batch
from tailrace.records.record import NewRecord
from tailrace.wire.messages.delete_topics import DeleteTopicsRequest
from tailrace.wire.messages.fetch import FetchRequest, FetchResponse, PartitionToFetch, TopicToFetch
from tailrace.wire.messages.produce import PartitionToProduce, ProduceRequest, TopicToProduce
from tests.unit.doors.kafka.hostile import until
from tests.unit.doors.kafka.served import ANSWER_MAX_S, Served, with_broker


def fetch(offset: int, min_bytes: int, max_wait_ms: int = 60_000, session_epoch: int = -1) -> FetchRequest:
    wanted = PartitionToFetch(partition=0, fetch_offset=offset, partition_max_bytes=50 * MiB)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=50 * MiB,
        topics=(TopicToFetch(name="t", partitions=(wanted,)),),
        session_epoch=session_epoch,
    )


async def put(served: Served, size: int) -> None:
    """Append one batch of about so many bytes over a connection of its own."""
    partition = served.node.hosted.find("t", 0)
    partition.append(memoryview(build_batch([NewRecord(value=bytes(size), timestamp=1)])), 1)


async def answered(waiting: "asyncio.Future[FetchResponse]") -> bytes:
    response = await asyncio.wait_for(waiting, ANSWER_MAX_S)
    return bytes(response.topics[0].partitions[0].records or b"")


async def parked(served: Served) -> None:
    """Wait until the broker has begun to wait with the fetch."""
    await until(lambda: bool(served.node.hosted.find("t", 0)._watchers))


@with_broker()
async def test_one_byte_wakes_it(served: Served) -> None:
    await served.make_topic("t")
    waiting = served.client.send(fetch(0, min_bytes=1), 11)
    await parked(served)
    await put(served, 10)
    assert await answered(waiting)


@with_broker()
async def test_the_end_of_a_fetch_session_is_answered_at_once(served: Served) -> None:
    """KIP-227: a consumer that closes names no partition; it waits for the answer."""
    await served.make_topic("t")
    opened = await served.call(fetch(0, min_bytes=1, max_wait_ms=0, session_epoch=0), 11)
    assert opened.session_id
    ending = FetchRequest(max_wait_ms=60_000, min_bytes=1, topics=(), session_id=opened.session_id, session_epoch=-1)
    ended = await asyncio.wait_for(served.client.send(ending, 11), ANSWER_MAX_S)
    assert (ended.error_code, ended.topics) == (0, ())


@with_broker()
async def test_it_waits_for_as_much_as_it_wants_and_counts_instead_of_reading(served: Served) -> None:
    await served.make_topic("t")
    partition = served.node.hosted.find("t", 0)
    waiting = served.client.send(fetch(0, min_bytes=100_000), 11)
    await parked(served)
    looks = 0
    read = partition.read

    def counted(offset: int, max_bytes: int, *, committed: bool = False, skip_empty: bool = False) -> Read | None:
        nonlocal looks
        looks += 1
        return read(offset, max_bytes, committed=committed, skip_empty=skip_empty)

    partition.read = counted  # type: ignore[method-assign]
    for _ in range(99):
        await put(served, 900)
        await asyncio.sleep(0)
    assert not waiting.done()
    assert looks == 0
    await put(served, 20_000)
    assert len(await answered(waiting)) >= 100_000
    assert looks == 1


@with_broker(fsync="always")
async def test_what_is_not_committed_yet_does_not_count_and_wakes_it_later(served: Served) -> None:
    await served.make_topic("t")
    await put(served, 500)
    waiting = served.client.send(fetch(0, min_bytes=1_000), 11)
    await parked(served)
    await put(served, 600)
    assert len(await answered(waiting)) >= 1_000


@with_broker()
async def test_more_than_one_answer_can_hold_does_not_wait_for_more(served: Served) -> None:
    await served.make_topic("t", max_message_bytes=str(4 * MiB))
    for _ in range(3):
        await put(served, MiB // 2)
    assert await answered(served.client.send(fetch(0, min_bytes=20 * MiB), 11))


@with_broker()
async def test_its_time_runs_out(served: Served) -> None:
    await served.make_topic("t")
    assert await answered(served.client.send(fetch(0, min_bytes=1, max_wait_ms=20), 11)) == b""


@with_broker()
async def test_a_deleted_topic_ends_the_wait(served: Served) -> None:
    await served.make_topic("t")
    waiting = served.client.send(fetch(0, min_bytes=1), 11)
    await parked(served)
    other = await type(served.client).connect(served.node.ports.net, "127.0.0.1", served.door.port)
    await other.call(DeleteTopicsRequest(topic_names=("t",)), 4)
    other.close()
    response: FetchResponse = await asyncio.wait_for(waiting, ANSWER_MAX_S)
    assert response.topics[0].partitions[0].error_code == 3


@with_broker()
async def test_an_error_of_ours_costs_one_connection_not_the_broker(served: Served) -> None:
    await served.make_topic("t")
    await put(served, 10)
    partition = served.node.hosted.find("t", 0)

    async def broken(
        self: Partition, offset: int, max_bytes: int, *, committed: bool = False, skip_empty: bool = False
    ) -> Read:
        raise RuntimeError("planted")

    partition.read = lambda offset, max_bytes, **_: None  # type: ignore[method-assign]
    partition.read_cold = broken.__get__(partition)  # type: ignore[method-assign]
    with pytest.raises(ConnectionLost):
        await asyncio.wait_for(served.client.call(fetch(0, min_bytes=1), 11), ANSWER_MAX_S)
    assert not served.node.background.failed.done()
    other = await type(served.client).connect(served.node.ports.net, "127.0.0.1", served.door.port)
    batch = bytes(build_batch([NewRecord(value=b"v", timestamp=1)]))
    topic = TopicToProduce(name="t", partitions=(PartitionToProduce(partition=0, records=batch),))
    answer = await other.call(ProduceRequest(acks=1, timeout_ms=1000, topics=(topic,)), 9)
    assert answer.topics[0].partitions[0].error_code == 0
    other.close()


def not_cached(served: Served) -> None:
    """Let every read of the partition go to the disk, as if nothing were in the page cache."""
    served.node.hosted.find("t", 0).read = lambda offset, max_bytes, **_: None  # type: ignore[method-assign]


@with_broker()
async def test_a_client_that_leaves_during_a_read_from_disk_is_not_answered(served: Served) -> None:
    await served.make_topic("t")
    await put(served, 10)
    not_cached(served)
    partition = served.node.hosted.find("t", 0)
    read_cold, begun, may_end = partition.read_cold, asyncio.Event(), asyncio.Event()

    async def slow(offset: int, max_bytes: int, *, committed: bool = False, skip_empty: bool = False) -> Read:
        begun.set()
        await may_end.wait()
        return await read_cold(offset, max_bytes, committed=committed, skip_empty=skip_empty)

    partition.read_cold = slow  # type: ignore[method-assign]
    other = await type(served.client).connect(served.node.ports.net, "127.0.0.1", served.door.port)
    waiting = other.send(fetch(0, min_bytes=1), 11)
    await asyncio.wait_for(begun.wait(), ANSWER_MAX_S)
    other.close()
    with pytest.raises(ConnectionLost):
        await waiting
    may_end.set()
    assert await answered(served.client.send(fetch(0, min_bytes=1), 11))
    assert not served.node.background.failed.done()


@with_broker()
async def test_an_answered_fetch_is_freed_without_garbage_collection(served: Served) -> None:
    """A fetch in a reference cycle would hold its records, up to 50 MiB, until the next garbage collection."""
    await served.make_topic("t")
    gc.collect()
    gc.disable()
    try:
        waiting = served.client.send(fetch(0, min_bytes=1), 11)
        await parked(served)
        await put(served, 10)
        assert await answered(waiting)
        assert await answered(served.client.send(fetch(0, min_bytes=1), 11))
        not_cached(served)
        assert await answered(served.client.send(fetch(0, min_bytes=1), 11))
        await until(lambda: not any(isinstance(one, Fetch) for one in gc.get_objects()))
    finally:
        gc.enable()
