"""Markers between brokers: each is answered for itself, wherever its leader is, and none holds up the others."""

import asyncio

import pytest

from tailrace.broker.peers import Unreachable
from tailrace.model.ids import BrokerId, Id
from tailrace.wire.errors import Error
from tailrace.wire.messages.peers.write_markers import Marker, PartitionToMark
from tests.unit.doors.clustered import Clustered, with_cluster


def marker(topic_id: Id, *numbers: int, producer: int = 7, commits: bool = True) -> Marker:
    return Marker(
        producer_id=producer,
        producer_epoch=0,
        coordinator_epoch=0,
        committed=commits,
        transaction_version=2,
        partitions=tuple(PartitionToMark(topic_id=topic_id, partition=number) for number in numbers),
    )


@with_cluster()
async def test_a_leader_writes_what_any_broker_sends(cluster: Clustered) -> None:
    topic_id = await cluster.make_topic("t", (1, 2), (2, 3))
    markers = [marker(topic_id, 0, 1), marker(Id(b"nobody knows it!"), 0), marker(topic_id, 0, producer=8)]
    expected = [[Error.NONE, Error.NOT_LEADER_OR_FOLLOWER], [Error.UNKNOWN_TOPIC_ID], [Error.NONE]]
    for sender in cluster.ids:  # one of them is the leader itself; what is repeated is not written again
        assert await cluster[sender].node.marking.send(BrokerId(1), markers) == expected
    leader = cluster.replica(1, "t")
    assert (leader.high_watermark, [producer for producer, _ in leader.log.producers.items()]) == (2, [7, 8])


@with_cluster()
async def test_a_partition_without_its_majority_does_not_hold_up_the_others(cluster: Clustered) -> None:
    topic_id = await cluster.make_topic("t", (1, 3), (1, 2))
    await cluster[3].node.quorums.peers.close()
    markers = [marker(topic_id, 0, 1)]
    async with asyncio.timeout(5):
        assert await cluster[2].node.marking.send(BrokerId(1), markers) == [[Error.REQUEST_TIMED_OUT, Error.NONE]]


@with_cluster(brokers=2)
async def test_a_broker_that_is_gone_is_said_to_be(cluster: Clustered) -> None:
    topic_id = await cluster.make_topic("t", (1,))
    await cluster[1].node.quorums.peers.close()
    with pytest.raises(Unreachable):
        await cluster[2].node.marking.send(BrokerId(1), [marker(topic_id, 0)], timeout_s=0.2)
