"""Read-ahead: the next piece of a consumer that catches up is prepared, equals a plain read, and expires."""

from typing import Any
from unittest.mock import patch

import pytest

from tailrace.broker.partitions.partition import Partition
from tailrace.broker.partitions.read_ahead import Piece
from tailrace.log.reader import Read
from tailrace.model.limits import READ_AHEAD_MAX_BYTES, READ_AHEAD_MIN_BYTES, KiB, MiB
from tailrace.records.build import build_batch
from tailrace.records.record import NewRecord
from tailrace.wire.errors import Error
from tailrace.wire.messages.delete_records import DeleteRecordsRequest, PartitionToTrim, TopicToTrim
from tailrace.wire.messages.fetch import FetchRequest, PartitionToFetch, TopicToFetch
from tests.unit.doors.kafka.hostile import until
from tests.unit.doors.kafka.served import Served, with_broker

BATCH_BYTES = 600 * KiB  # two do not fit an answer


async def filled(served: Served, batches: int) -> list[bytes]:
    """A topic of large batches, one record each; the batches as they are in its log."""
    await served.make_topic("t")
    partition = served.node.hosted.find("t", 0)
    for number in range(batches):
        batch = build_batch([NewRecord(value=bytes([number]) * BATCH_BYTES, timestamp=1)])
        partition.append(memoryview(batch), 1)
    return [bytes(at_hand(partition, number).data) for number in range(batches)]


def at_hand(partition: Partition, offset: int) -> Read:
    read = partition.read(offset, MiB)
    if read is None:
        pytest.skip("this file system does not tell what it has at hand")
    return read


async def fetched(served: Served, offset: int) -> Any:
    wanted = PartitionToFetch(partition=0, fetch_offset=offset, partition_max_bytes=50 * MiB)
    topics = (TopicToFetch(name="t", partitions=(wanted,)),)
    request = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=50 * MiB, topics=topics)
    return (await served.call(request, 11)).topics[0].partitions[0]


@with_broker()
async def test_the_next_piece_is_there_before_it_is_asked_for(served: Served) -> None:
    batches = await filled(served, 4)
    partition, ahead = served.node.hosted.find("t", 0), served.node.read_ahead
    read_at: list[int] = []
    read = partition.read

    def noted(offset: int, max_bytes: int, *, committed: bool = False, skip_empty: bool = False) -> Any:
        read_at.append(offset)
        return read(offset, max_bytes, committed=committed, skip_empty=skip_empty)

    partition.read = noted  # type: ignore[method-assign]
    for offset, batch in enumerate(batches):
        assert bytes((await fetched(served, offset)).records) == batch
        await until(lambda after=offset + 1: read_at[-1] == min(after, 3))  # type: ignore[misc]
    assert read_at == [0, 1, 2, 3]
    assert ahead.bytes == 0  # after the last there is nothing


@with_broker()
async def test_what_is_ready_is_gone_when_the_records_are(served: Served) -> None:
    await filled(served, 3)
    assert (await fetched(served, 0)).error_code == 0
    await until(lambda: served.node.read_ahead.bytes > 0)
    trimmed = TopicToTrim(name="t", partitions=(PartitionToTrim(partition=0, offset=2),))
    await served.call(DeleteRecordsRequest(topics=(trimmed,), timeout_ms=5000), 2)
    assert (await fetched(served, 1)).error_code == Error.OFFSET_OUT_OF_RANGE
    assert served.node.read_ahead.bytes == 0


@with_broker()
async def test_it_is_bounded_by_the_memory_that_it_holds(served: Served) -> None:
    """A short batch before a long one is a short piece of a long read."""
    await served.make_topic("t")
    partition, ahead = served.node.hosted.find("t", 0), served.node.read_ahead
    for size in (10, MiB - KiB):
        partition.append(memoryview(build_batch([NewRecord(value=bytes(size), timestamp=1)])), 1)
    at_hand(partition, 0)
    for number in range(40):
        ahead.prepare([Piece(partition, 0, 900 * KiB - number, False)])
    held = {id(memoryview(one.read.data).obj): len(memoryview(one.read.data).obj) for one in ahead._ready.values()}  # type: ignore[arg-type]
    assert 8 < len(held) < 40
    assert ahead.bytes == sum(held.values()) <= READ_AHEAD_MAX_BYTES


@with_broker()
async def test_what_nobody_asks_for_is_forgotten(served: Served) -> None:
    await filled(served, 2)
    partition, ahead = served.node.hosted.find("t", 0), served.node.read_ahead
    with patch("tailrace.broker.partitions.read_ahead.READ_AHEAD_KEPT_S", 0.05):
        ahead.prepare([Piece(partition, 0, MiB, False)])
    assert ahead.bytes >= BATCH_BYTES
    await until(lambda: ahead.bytes == 0)


@with_broker()
async def test_a_piece_that_is_ready_is_not_read_again(served: Served) -> None:
    """Two consumers at one place."""
    await filled(served, 1)
    ahead, piece = served.node.read_ahead, Piece(served.node.hosted.find("t", 0), 0, MiB, False)
    ahead.prepare([piece])
    ready = ahead._ready[piece]
    ahead.prepare([piece])
    assert ahead._ready[piece] is ready


@with_broker()
async def test_who_asks_for_little_gets_nothing_ready(served: Served) -> None:
    await filled(served, 2)
    ahead = served.node.read_ahead
    ahead.prepare([Piece(served.node.hosted.find("t", 0), 0, READ_AHEAD_MIN_BYTES - 1, False)])
    assert ahead.bytes == 0
