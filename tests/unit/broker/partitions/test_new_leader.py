"""How a leader that was just elected answers producers, who may find it before its leader-change batch is committed."""

import asyncio

import pytest

from tailrace.broker.partitions.partition import ACKS_ALL, PIPELINE_MAX_S, Partition
from tailrace.model.faults import NotLeader
from tailrace.records.build import build_batch
from tailrace.records.record import NewRecord
from tailrace.wire.errors import Error
from tailrace.wire.messages.produce import PartitionToProduce, ProduceRequest, TopicToProduce
from tests.unit.doors.kafka.clustered import Clustered, with_cluster
from tests.unit.doors.kafka.hostile import until

PRODUCER_ID = 7


def batch(sequence: int) -> bytearray:
    record = NewRecord(value=b"%d" % sequence, timestamp=1)
    return build_batch([record], producer_id=PRODUCER_ID, producer_epoch=0, base_sequence=sequence)


async def produce(cluster: Clustered, broker: int, sequence: int, acks: int = ACKS_ALL) -> Error:
    data = PartitionToProduce(partition=0, records=bytes(batch(sequence)))
    request = ProduceRequest(acks=acks, timeout_ms=5000, topics=(TopicToProduce(name="t", partitions=(data,)),))
    answer = await cluster[broker].call(request, 9)
    return Error(answer.topics[0].partitions[0].error_code)


def hand_over(cluster: Clustered, *, leader: int, to: int) -> Partition:
    assert cluster[leader].node.control.duties.hand_over(cluster.replica(leader, "t"), cluster[to].node.broker_id)
    return cluster.replica(to, "t")


@with_cluster(auto_leader_rebalance_enable=False)
async def test_it_takes_batches_before_it_lets_anybody_read(cluster: Clustered) -> None:
    await cluster.make_topic("t", (1, 2))
    assert await produce(cluster, 1, 0, acks=1) == Error.NONE
    successor = hand_over(cluster, leader=1, to=2)  # which does not know yet that the record is committed
    async with asyncio.timeout(10):
        while not successor.member.announcing:  # noqa: ASYNC110
            await asyncio.sleep(0)
    with pytest.raises(NotLeader):
        successor.require_leader()
    appended = successor.append(memoryview(batch(1)), ACKS_ALL)
    assert not appended.duplicate
    assert successor.high_watermark < appended.last_offset
    await until(lambda: successor.leads and successor.high_watermark > appended.last_offset)
    assert await produce(cluster, 2, 1) == Error.NONE  # the same once more


@with_cluster(auto_leader_rebalance_enable=False)
async def test_what_follows_on_a_refused_batch_is_refused_too(cluster: Clustered) -> None:
    await cluster.make_topic("t")
    assert await produce(cluster, 1, 0) == Error.NONE
    assert await produce(cluster, 2, 1) == Error.NOT_LEADER_OR_FOLLOWER
    successor = hand_over(cluster, leader=1, to=2)
    await until(lambda: successor.leads)
    assert await produce(cluster, 2, 2) == Error.NOT_LEADER_OR_FOLLOWER  # it was on its way when 1 was refused
    assert [await produce(cluster, 2, one) for one in (0, 1, 2)] == [Error.NONE] * 3
    await until_a_gap_is_one(cluster, broker=2, sequence=9)


@with_cluster(auto_leader_rebalance_enable=False)
async def test_what_follows_on_a_batch_that_the_leader_before_refused_is_refused_too(cluster: Clustered) -> None:
    """librdkafka may send the next batch to the new leader before the old one has answered the last."""
    await cluster.make_topic("t")
    assert await produce(cluster, 1, 0) == Error.NONE
    successor = hand_over(cluster, leader=1, to=2)
    await until(lambda: successor.leads)
    assert await produce(cluster, 1, 1) == Error.NOT_LEADER_OR_FOLLOWER
    assert await produce(cluster, 2, 2) == Error.NOT_LEADER_OR_FOLLOWER
    assert [await produce(cluster, 2, one) for one in (1, 2)] == [Error.NONE] * 2
    await until_a_gap_is_one(cluster, broker=2, sequence=9)


@with_cluster(auto_leader_rebalance_enable=False)
async def test_who_is_new_begins_at_0_with_a_new_leader(cluster: Clustered) -> None:
    """Otherwise the batches before it, which were refused, would be out of order when they are resent."""
    await cluster.make_topic("t")
    successor = hand_over(cluster, leader=1, to=2)
    await until(lambda: successor.leads)
    assert await produce(cluster, 2, 1) == Error.NOT_LEADER_OR_FOLLOWER
    assert [await produce(cluster, 2, one) for one in (0, 1)] == [Error.NONE] * 2


async def until_a_gap_is_one(cluster: Clustered, *, broker: int, sequence: int) -> None:
    async with asyncio.timeout(2 * PIPELINE_MAX_S):
        while (told := await produce(cluster, broker, sequence)) != Error.OUT_OF_ORDER_SEQUENCE_NUMBER:
            assert told == Error.NOT_LEADER_OR_FOLLOWER
            await asyncio.sleep(0.05)
