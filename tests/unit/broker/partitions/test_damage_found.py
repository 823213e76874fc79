"""Damage found while a broker runs: a partition with healthy replicas continues on them."""

import pytest

from tailrace.log.file_names import DAMAGED_NAME
from tailrace.model.faults import StorageFailed
from tailrace.testing.simulation.file_content import FileContent
from tailrace.wire.errors import Error
from tailrace.wire.messages.delete_records import DeleteRecordsRequest, PartitionToTrim, TopicToTrim
from tailrace.wire.messages.fetch import FetchRequest, PartitionToFetch, TopicToFetch
from tests.unit.broker.simulated import Brokers, simulated


def first_segment(brokers: Brokers) -> str:
    return brokers.replica(1, "t").log.segments[0].file.path


async def fetch(brokers: Brokers) -> int:
    """The error code of a consumer's Fetch at the log start of broker 1's replica."""
    start = brokers.replica(1, "t").log.start
    wanted = PartitionToFetch(partition=0, fetch_offset=start, partition_max_bytes=1_000_000)
    request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=(TopicToFetch(name="t", partitions=(wanted,)),))
    code: int = (await brokers.call(1, request, 11)).topics[0].partitions[0].error_code
    return code


async def fill(brokers: Brokers) -> int:
    """Write several segments, all but the last below the recovery point; the log end."""
    for _ in range(6):
        end = brokers.append(1, "t", bytes(800))
    await brokers.until(lambda: brokers.replica(1, "t").high_watermark == end)
    await brokers.stop(1)
    await brokers.start(1)
    await brokers.until(lambda: brokers.replica(1, "t").high_watermark >= end)
    assert len(brokers.replica(1, "t").log.segments) > 2
    return end


async def find_damage(brokers: Brokers) -> None:
    log = brokers.replica(1, "t").log
    brokers.machine(1).storage.flip_bit(first_segment(brokers), 30)
    assert await fetch(brokers) == Error.KAFKA_STORAGE_ERROR
    await brokers.until(lambda: log.ports.disk.exists(f"{log.folder}/{DAMAGED_NAME}"))
    await brokers.elapse(0.1)  # for its name to be on the disk, too


async def delete_up_to(brokers: Brokers, start: int) -> None:
    wanted = TopicToTrim(name="t", partitions=(PartitionToTrim(partition=0, offset=start),))
    leader = next(one for one in brokers.ids if brokers.replica(one, "t").leads)
    await brokers.call(leader, DeleteRecordsRequest(topics=(wanted,), timeout_ms=5000), 2)
    await brokers.until(lambda: brokers.replica(1, "t").log.segments[0].base == start)


async def is_fetched_anew(brokers: Brokers, end: int) -> None:
    await brokers.start(1)
    replica = brokers.replica(1, "t")
    assert not replica.replica.may_vote
    await brokers.until(lambda: replica.replica.may_vote and replica.high_watermark >= end)
    assert await fetch(brokers) == Error.NONE


@simulated()
async def test_what_was_found_is_fetched_anew_after_a_stop(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1, 2, 3), segment_bytes=1024)
    end = await fill(brokers)
    await find_damage(brokers)
    await brokers.stop(1)
    await is_fetched_anew(brokers, end)


@simulated()
async def test_what_was_found_is_fetched_anew_after_a_crash(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1, 2, 3), segment_bytes=1024)
    end = await fill(brokers)
    await find_damage(brokers)
    brokers.kill(1, power_loss=True)
    await is_fetched_anew(brokers, end)


@simulated(count=1)
async def test_a_sole_replica_takes_nothing_until_a_good_copy_is_put_back(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1,), segment_bytes=1024)
    await fill(brokers)
    file = brokers.machine(1).storage.tree.find(first_segment(brokers))
    assert isinstance(file, FileContent)
    good = bytes(file.visible)
    await find_damage(brokers)
    await brokers.stop(1)
    await brokers.start(1)
    await brokers.until(lambda: brokers.replica(1, "t").leads)
    with pytest.raises(StorageFailed, match="damaged"):
        brokers.append(1, "t")
    await brokers.stop(1)
    file.visible[:] = good
    await brokers.start(1)
    await brokers.until(lambda: brokers.replica(1, "t").leads)
    brokers.append(1, "t")
    assert await fetch(brokers) == Error.NONE


@simulated(count=1)
async def test_damage_goes_with_the_records_that_are_deleted(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1,), segment_bytes=1024)
    end = await fill(brokers)
    await find_damage(brokers)
    await delete_up_to(brokers, end - 1)
    await brokers.stop(1)
    await brokers.start(1)
    await brokers.until(lambda: brokers.replica(1, "t").leads)
    assert brokers.append(1, "t") > end


@simulated(count=1)
async def test_a_torn_tail_is_cut_off_though_there_was_damage(brokers: Brokers) -> None:
    """The damage found before was repaired by then: its mark says nothing about other places."""
    await brokers.make_topic("t", (1,), segment_bytes=1024)
    end = await fill(brokers)
    file = brokers.machine(1).storage.tree.find(first_segment(brokers))
    assert isinstance(file, FileContent)
    good = bytes(file.visible)
    log = brokers.replica(1, "t").log
    last = brokers.machine(1).storage.tree.find(log.segments[-1].file.path)
    await find_damage(brokers)
    brokers.kill(1)
    file.visible[:] = good
    assert isinstance(last, FileContent)
    last.visible += b"half a batch"
    await brokers.start(1)
    await brokers.until(lambda: brokers.replica(1, "t").leads)
    assert brokers.append(1, "t") > end
    assert await fetch(brokers) == Error.NONE
    again = brokers.replica(1, "t").log
    assert not again.ports.disk.exists(f"{again.folder}/{DAMAGED_NAME}")


@simulated()
async def test_a_mark_that_cannot_be_read_is_one_at_the_start(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1, 2, 3), segment_bytes=1024)
    end = await fill(brokers)
    await delete_up_to(brokers, brokers.replica(1, "t").log.segments[2].base)
    await find_damage(brokers)
    mark = brokers.machine(1).storage.tree.find(f"{brokers.replica(1, 't').log.folder}/{DAMAGED_NAME}")
    assert isinstance(mark, FileContent)
    await brokers.stop(1)
    mark.visible[:] = b"nonsense"
    await is_fetched_anew(brokers, end)


@simulated()
async def test_a_leader_that_finds_damage_lets_a_healthy_replica_lead(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1, 2, 3))
    leader = brokers.replica(1, "t")
    for _ in range(6):
        end = brokers.append(1, "t")
    await brokers.until(lambda: leader.high_watermark == end)
    brokers.machine(1).storage.flip_bit(first_segment(brokers), 30)
    assert await fetch(brokers) == Error.KAFKA_STORAGE_ERROR
    await brokers.until(lambda: any(brokers.replica(one, "t").leads for one in (2, 3)), within_seconds=10.0)


@simulated()
async def test_a_follower_that_finds_damage_neither_votes_nor_leads(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1, 2, 3))
    leader, follower = brokers.replica(1, "t"), brokers.replica(2, "t")
    for _ in range(6):
        end = brokers.append(1, "t")
    await brokers.until(lambda: follower.high_watermark == leader.high_watermark == end)
    brokers.machine(2).storage.flip_bit(f"{follower.log.folder}/{0:020d}.log", 30)
    with pytest.raises(StorageFailed):
        await brokers.machine(2).run(follower.read_cold(0, 1_000_000))
    assert follower.offline is not None
    brokers.kill(1)
    await brokers.elapse(10.0)
    assert not follower.leads
    assert not brokers.replica(3, "t").leads  # two of three are gone
