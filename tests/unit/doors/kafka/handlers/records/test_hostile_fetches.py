"""Fetches with absurd numbers, as a replica, or from clients that disconnect early: limited, and harmless to others."""

import asyncio
import struct
from typing import Any

import cramjam

from tailrace.records.build import build_batch
from tailrace.records.record import NewRecord
from tailrace.wire.errors import Error
from tailrace.wire.messages.create_topics import CreateTopicsRequest, NewTopic
from tailrace.wire.messages.fetch import FetchRequest, PartitionToFetch, ReplicaState, TopicToFetch
from tailrace.wire.messages.list_offsets import ListOffsetsRequest, PartitionAsked, TopicAsked
from tailrace.wire.messages.produce import PartitionToProduce, ProduceRequest, TopicToProduce
from tests.unit.doors.kafka.handlers.records.test_hostile_batches import sealed
from tests.unit.doors.kafka.hostile import Raw, framed, heard, until
from tests.unit.doors.kafka.served import Served, with_broker

INT32_EXTREMES = (0, 1, -1, 2**31 - 1, -(2**31))
INT64_EXTREMES = (-1, -2, 2, 2**62, 2**63 - 1, -(2**63))


def fetch(*offsets: int, max_wait_ms: int = 0, min_bytes: int = 0, max_bytes: int = 10**6, **said: Any) -> FetchRequest:
    size = said.pop("partition_max_bytes", 10**6)
    asked = tuple(PartitionToFetch(partition=0, fetch_offset=offset, partition_max_bytes=size) for offset in offsets)
    topics = (TopicToFetch(name="t", partitions=asked),)
    return FetchRequest(max_wait_ms=max_wait_ms, min_bytes=min_bytes, max_bytes=max_bytes, topics=topics, **said)


async def first(served: Served, request: FetchRequest, version: int = 12) -> Any:
    return (await served.call(request, version)).topics[0].partitions[0]


@with_broker()
async def test_absurd_sizes_still_give_one_batch(served: Served) -> None:
    await served.make_topic("t")
    await served.produce("t", 1)
    whole = (await first(served, fetch(0))).records
    for number in INT32_EXTREMES:
        for size in INT32_EXTREMES:
            got = await first(served, fetch(0, max_bytes=number, partition_max_bytes=size))
            assert (got.error_code, bytes(got.records)) == (0, bytes(whole)), (number, size)


@with_broker()
async def test_absurd_sizes_of_what_is_read_from_the_disk(served: Served) -> None:
    """The same, if the records must be read from disk."""
    await served.make_topic("t")
    await served.produce("t", 1)
    log = served.node.hosted.find("t", 0).log
    for number in INT32_EXTREMES:
        assert (await log.read_cold(0, number, 1)).next_offset == 1


@with_broker()
async def test_absurd_offsets_are_out_of_range(served: Served) -> None:
    await served.make_topic("t")
    await served.produce("t", 1)
    for offset in INT64_EXTREMES:
        got = await first(served, fetch(offset, max_wait_ms=60_000, min_bytes=1))  # a fault does not wait
        assert got.error_code == Error.OFFSET_OUT_OF_RANGE, offset


@with_broker()
async def test_absurd_waits_and_minimums_are_answered_or_parked(served: Served) -> None:
    await served.make_topic("t")
    for wait in (-1, 0, -(2**31)):
        for least in INT32_EXTREMES:
            assert (await first(served, fetch(0, max_wait_ms=wait, min_bytes=least))).error_code == 0
    parked = served.client.send(fetch(0, max_wait_ms=2**31 - 1, min_bytes=1), 12)
    other = await Raw.connect(served.node.kafka_port)
    produced = ProduceRequest(acks=1, timeout_ms=1000, topics=(_batch_for("t"),))
    other.send(framed(produced, 9))
    async with asyncio.timeout(10):
        assert (await parked).topics[0].partitions[0].records
    other.close()


@with_broker()
async def test_absurd_times_find_nothing_or_are_told_to_mean_nothing(served: Served) -> None:
    await served.make_topic("t")
    await served.produce("t", 1000, 2000)
    for timestamp, error, offset in (
        (2**63 - 1, 0, -1),
        (0, 0, 0),
        (1001, 0, 1),
        (-7, Error.UNSUPPORTED_VERSION, -1),
        (-(2**63), Error.UNSUPPORTED_VERSION, -1),
    ):
        got = await by_time(served, timestamp)
        assert (got.error_code, got.offset) == (error, offset), timestamp


async def by_time(served: Served, timestamp: int) -> Any:
    asked = TopicAsked(name="t", partitions=(PartitionAsked(partition=0, timestamp=timestamp),))
    return (await served.call(ListOffsetsRequest(replica_id=-1, topics=(asked,)), 7)).topics[0].partitions[0]


@with_broker()
async def test_a_partition_named_often_in_one_fetch_is_read_once(served: Served) -> None:
    await served.make_topic("t")
    await served.produce("t", 1)
    answer = await served.call(fetch(*([5] * 5000), 0), 12)
    (got,) = answer.topics[0].partitions
    assert (got.error_code, got.high_watermark) == (0, 1)
    assert got.records


@with_broker()
async def test_fetching_in_a_replicas_name_is_for_the_peers_port(served: Served) -> None:
    await served.make_topic("t")
    state = ReplicaState(replica_id=3, replica_epoch=1)
    for request, version in (
        (fetch(0, replica_id=3), 12),
        (FetchRequest(max_wait_ms=0, min_bytes=0, topics=(), replica_state=state), 15),
    ):
        with heard() as lines:
            client = await Raw.connect(served.node.kafka_port)
            client.send(framed(request, version))
            assert await client.closed()
        assert "Fetch as replica 3: replicas fetch on the peer port only" in lines[0]


@with_broker()
async def test_a_fetch_whose_client_left_is_let_go_of(served: Served) -> None:
    await served.make_topic("t")
    partition = served.node.hosted.find("t", 0)
    clients = [await Raw.connect(served.node.kafka_port) for _ in range(20)]
    for client in clients:
        client.send(framed(fetch(0, max_wait_ms=2**31 - 1, min_bytes=2**31 - 1), 12))
    await until(lambda: len(partition._watchers) == 20)
    for client in clients:
        client.close()
    await until(lambda: not partition._watchers)


@with_broker(fsync="always")
async def test_a_topic_whose_client_left_while_it_was_made_is_whole(served: Served) -> None:
    for number in range(10):
        client = await Raw.connect(served.node.kafka_port)
        topic = NewTopic(name=f"t{number}", num_partitions=3, replication_factor=1)
        client.send(framed(CreateTopicsRequest(topics=(topic,), timeout_ms=1000), 7))
        await client.writer.drain()
        client.writer.transport.abort() if number % 2 else client.close()
    await until(lambda: len(served.door) == 1)
    for name in served.node.hosted.image.topics:
        partitions = served.node.hosted.of_topic(name)
        assert [partition.leads for partition in partitions] == [True] * 3, name
    assert served.node.hosted.image.topics


def _batch_for(topic: str, batch: bytes | None = None) -> TopicToProduce:
    records = bytes(build_batch([NewRecord(value=b"v")])) if batch is None else batch
    return TopicToProduce(name=topic, partitions=(PartitionToProduce(partition=0, records=records),))


def garbage(codec: int, body: bytes, timestamp: int = 5000) -> bytes:
    """A batch whose checksum fits and whose records are anything but records."""
    batch = build_batch([NewRecord(value=b"v", timestamp=timestamp)])
    batch[61:] = body
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    struct.pack_into(">h", batch, 21, codec)
    return sealed(batch)


@with_broker()
async def test_garbage_for_records_is_kept_as_sent_and_is_no_damage(served: Served) -> None:
    await served.make_topic("t")
    sent = [garbage(codec, b"this is no list of records") for codec in range(5)]
    for batch in sent:
        answer = await served.call(ProduceRequest(acks=-1, timeout_ms=1000, topics=(_batch_for("t", batch),)), 9)
        assert answer.topics[0].partitions[0].error_code == 0
    for timestamp in (1, 5000):
        found = await by_time(served, timestamp)
        assert (found.error_code, found.offset, found.timestamp) == (0, 0, 5000)
    assert (await by_time(served, -3)).error_code == 0
    assert await served.produce("t", 6000) == 5
    assert (await by_time(served, 6000)).offset == 5
    got = bytes((await first(served, fetch(0))).records)
    assert got[61 : 61 + 26] == b"this is no list of records"


@with_broker()
async def test_a_decompression_bomb_is_kept_as_sent_and_never_opened_to_its_full_size(served: Served) -> None:
    await served.make_topic("t")
    bomb = bytes(cramjam.zstd.compress(bytes(32 * 2**20))) * 20  # 640 MiB in a few kilobytes
    batch = garbage(4, bomb)
    assert len(batch) < 64 * 1024
    answer = await served.call(ProduceRequest(acks=-1, timeout_ms=1000, topics=(_batch_for("t", batch),)), 9)
    assert answer.topics[0].partitions[0].error_code == 0
    found = await by_time(served, 1)
    assert (found.error_code, found.offset) == (0, 0)
    assert await served.produce("t", 6000) == 1


@with_broker()
async def test_times_that_add_up_beyond_64_bits_do_not_break_a_lookup(served: Served) -> None:
    await served.make_topic("t")
    batch = build_batch([NewRecord(value=b"v", timestamp=0), NewRecord(value=b"v", timestamp=1)])
    struct.pack_into(">qq", batch, 27, 2**63 - 1, 5000)  # base and max timestamp
    answer = await served.call(ProduceRequest(acks=1, timeout_ms=1000, topics=(_batch_for("t", sealed(batch)),)), 9)
    assert answer.topics[0].partitions[0].error_code == 0
    found = await by_time(served, -3)
    assert (found.error_code, found.offset, found.timestamp) == (0, 0, 5000)


@with_broker(connections_max_idle_ms=1000)
async def test_a_client_that_takes_in_nothing_for_long_is_hung_up_on(served: Served) -> None:
    await served.make_topic("t")
    batch = bytes(build_batch([NewRecord(value=bytes(10**6))]))
    for _ in range(4):
        await served.call(ProduceRequest(acks=1, timeout_ms=1000, topics=(_batch_for("t", batch),)), 9)
    client = await Raw.connect(served.node.kafka_port)
    client.writer.transport.pause_reading()  # type: ignore[attr-defined]
    with heard() as lines:
        client.send(framed(fetch(0, max_bytes=2**31 - 1, partition_max_bytes=2**31 - 1), 12) * 20)
        await until(lambda: any("it was idle for 1 s" in line for line in lines))
    await until(lambda: not served.door.unsent_bytes)
    client.writer.transport.abort()
