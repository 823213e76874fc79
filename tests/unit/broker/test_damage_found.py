"""Damage that is found while a broker runs: a partition that has healthy replicas goes on with them."""

import pytest

from tailrace.model.faults import StorageFailed
from tailrace.wire.errors import Error
from tailrace.wire.messages.fetch import FetchRequest, PartitionToFetch, TopicToFetch
from tests.unit.broker.simulated import Brokers, simulated


@simulated()
async def test_a_leader_that_finds_damage_lets_a_healthy_replica_lead(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1, 2, 3))
    leader = brokers.replica(1, "t")
    for _ in range(6):
        end = brokers.append(1, "t")
    await brokers.until(lambda: leader.high_watermark == end)
    brokers.machine(1).storage.flip_bit(f"{leader.log.folder}/{0:020d}.log", 30)
    wanted = PartitionToFetch(partition=0, fetch_offset=0, partition_max_bytes=1_000_000)
    request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=(TopicToFetch(name="t", partitions=(wanted,)),))
    answer = (await brokers.call(1, request, 11)).topics[0].partitions[0]
    assert answer.error_code == Error.KAFKA_STORAGE_ERROR
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
