"""Reading from followers (KIP-392): leaders name the preferred read replica; followers serve committed records."""

import asyncio
from typing import Any

import pytest

from tailrace.model.faults import NotLeader
from tailrace.model.ids import BrokerId, Epoch
from tailrace.raft.events import LeaderDisconnected
from tailrace.raft.messages import BeginEpoch
from tailrace.records.build import build_batch
from tailrace.records.record import NewRecord
from tailrace.wire.errors import Error
from tailrace.wire.messages.fetch import FetchRequest, FetchResponse, PartitionToFetch, TopicToFetch
from tailrace.wire.messages.list_offsets import ListOffsetsRequest, TopicAsked
from tailrace.wire.messages.list_offsets import PartitionAsked as OffsetAsked
from tailrace.wire.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest, PartitionAsked
from tailrace.wire.messages.offset_for_leader_epoch import TopicAsked as EpochTopic
from tests.unit.doors.kafka.clustered import Clustered, with_cluster
from tests.unit.doors.kafka.hostile import until
from tests.unit.doors.kafka.served import ANSWER_MAX_S


def fetch(offset: int, *, rack: str = "", epoch: int = -1, wait_ms: int = 0, session_epoch: int = -1) -> FetchRequest:
    wanted = PartitionToFetch(partition=0, fetch_offset=offset, current_leader_epoch=epoch, partition_max_bytes=10**6)
    topics = (TopicToFetch(name="t", partitions=(wanted,)),)
    return FetchRequest(max_wait_ms=wait_ms, min_bytes=1, topics=topics, rack_id=rack, session_epoch=session_epoch)


async def read(cluster: Clustered, broker: int, request: FetchRequest, version: int = 12) -> Any:
    return (await cluster[broker].call(request, version)).topics[0].partitions[0]


async def parked(cluster: Clustered, broker: int) -> None:
    await until(lambda: bool(cluster.replica(broker, "t")._watchers))


async def answered(waiting: "asyncio.Future[FetchResponse]") -> Any:
    return (await asyncio.wait_for(waiting, ANSWER_MAX_S)).topics[0].partitions[0]


@with_cluster()
async def test_a_leader_names_the_follower_in_the_consumers_rack(cluster: Clustered) -> None:
    await cluster.make_topic("t")
    await cluster[1].produce("t", 1, 2, 3)
    await cluster.caught_up("t", 3)
    for rack, broker in (("r2", 2), ("r3", 3)):
        for offset in (0, 3):
            told = await read(cluster, 1, fetch(offset, rack=rack, wait_ms=60_000))  # it is told so at once
            assert (told.error_code, told.preferred_read_replica, told.records) == (0, broker, b"")
            assert (told.high_watermark, told.log_start_offset) == (3, 0)
    for rack in ("", "r1", "elsewhere"):
        told = await read(cluster, 1, fetch(0, rack=rack))
        assert (told.preferred_read_replica, bool(told.records)) == (-1, True)
    assert (await read(cluster, 1, fetch(4, rack="r2"))).error_code == Error.OFFSET_OUT_OF_RANGE
    assert (await read(cluster, 2, fetch(0, rack="r3"))).preferred_read_replica == -1  # that is for leaders to say


@with_cluster()
async def test_a_session_is_told_too(cluster: Clustered) -> None:
    await cluster.make_topic("t")
    first = await cluster[1].call(fetch(0, session_epoch=0), 12)
    news = FetchRequest(
        max_wait_ms=0, min_bytes=1, topics=(), session_id=first.session_id, session_epoch=1, rack_id="r2"
    )
    answer = await cluster[1].call(news, 12)
    assert [one.preferred_read_replica for one in answer.topics[0].partitions] == [2]


@with_cluster(broker_session_timeout_ms=60_000)  # it is not fenced meanwhile
async def test_a_follower_that_is_gone_or_far_behind_is_not_named(cluster: Clustered) -> None:
    await cluster.make_topic("t")
    assert (await read(cluster, 1, fetch(0, rack="r3"))).preferred_read_replica == 3
    await cluster[3].node.quorums.peers.close()
    await cluster[1].produce("t", 1)
    assert (await read(cluster, 1, fetch(1, rack="r3"))).preferred_read_replica == -1  # it does not hold that
    silent = cluster[1].node.quorums.timing.fetch_timeout_s

    async def named() -> int:
        replica: int = (await read(cluster, 1, fetch(0, rack="r3"))).preferred_read_replica
        return replica

    async with asyncio.timeout(silent + ANSWER_MAX_S):
        while await named() == 3:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@with_cluster()
async def test_a_follower_serves_what_is_committed_to_clients_that_know_of_it(cluster: Clustered) -> None:
    await cluster.make_topic("t")
    await cluster[1].produce("t", 1, 2, 3)
    await cluster.caught_up("t", 3)
    whole = (await read(cluster, 1, fetch(0))).records
    epoch = cluster.replica(1, "t").epoch
    for version in (11, 12):
        got = await read(cluster, 2, fetch(0, epoch=epoch), version)
        assert (got.error_code, got.high_watermark, bytes(got.records)) == (0, 3, bytes(whole))
    for version in (4, 10):
        assert (await read(cluster, 2, fetch(0), version)).error_code == Error.NOT_LEADER_OR_FOLLOWER
    for wrong, error in ((epoch + 1, Error.UNKNOWN_LEADER_EPOCH), (epoch - 1, Error.FENCED_LEADER_EPOCH)):
        expected = error if wrong >= 0 else Error.NONE
        assert (await read(cluster, 2, fetch(0, epoch=wrong))).error_code == expected
    assert (await read(cluster, 2, fetch(4))).error_code == Error.OFFSET_OUT_OF_RANGE


@with_cluster()
async def test_it_waits_at_the_end_of_a_follower(cluster: Clustered) -> None:
    await cluster.make_topic("t")
    waiting = cluster[2].client.send(fetch(0, wait_ms=60_000), 12)
    await parked(cluster, 2)
    await cluster[1].produce("t", 1)
    assert (await answered(waiting)).records


@with_cluster(fsync="always")
async def test_what_a_follower_does_not_know_to_be_committed_waits_and_is_not_available(cluster: Clustered) -> None:
    await cluster.make_topic("t", (1, 2))
    follower = cluster.replica(2, "t")
    synced, follower.log.on_durable = follower.log.on_durable, lambda: None  # its disk takes its time
    cluster.replica(1, "t").append(memoryview(build_batch([NewRecord(value=b"v", timestamp=1)])), 1)
    await until(lambda: follower.log.durable == 1)
    assert follower.high_watermark == 0
    got = await read(cluster, 2, fetch(1, wait_ms=1))
    assert (got.error_code, got.high_watermark) == (Error.OFFSET_NOT_AVAILABLE, 0)
    assert (await read(cluster, 2, fetch(2, wait_ms=1))).error_code == Error.OFFSET_OUT_OF_RANGE
    waiting = cluster[2].client.send(fetch(1, wait_ms=60_000), 12)
    await parked(cluster, 2)
    follower.log.on_durable = synced
    synced()
    await cluster[1].produce("t", 2)
    got = await answered(waiting)
    assert (got.error_code, got.high_watermark, bool(got.records)) == (0, 2, True)


@with_cluster()
async def test_a_wait_at_a_leader_ends_when_another_leads(cluster: Clustered) -> None:
    await cluster.make_topic("t")
    for version, expected in ((10, (Error.NOT_LEADER_OR_FOLLOWER,)), (12, (Error.NOT_LEADER_OR_FOLLOWER, Error.NONE))):
        await until(lambda: any(cluster.replica(one, "t").leads for one in cluster.ids))
        leader = next(one for one in cluster.ids if cluster.replica(one, "t").leads)
        waiting = cluster[leader].client.send(fetch(0, wait_ms=60_000), version)
        await parked(cluster, leader)
        other = leader % 3 + 1
        assert cluster[leader].node.control.duties.hand_over(
            cluster.replica(leader, "t"), cluster[other].node.broker_id
        )
        assert (await answered(waiting)).error_code in expected


@with_cluster()
async def test_a_wait_at_a_follower_ends_when_another_leads(cluster: Clustered) -> None:
    await cluster.make_topic("t")
    epoch = cluster.replica(1, "t").epoch
    waiting = cluster[3].client.send(fetch(0, wait_ms=60_000, epoch=epoch), 12)
    await parked(cluster, 3)
    assert cluster[1].node.control.duties.hand_over(cluster.replica(1, "t"), cluster[2].node.broker_id)
    got = await answered(waiting)
    assert got.error_code in (Error.FENCED_LEADER_EPOCH, Error.NOT_LEADER_OR_FOLLOWER)


@with_cluster()
async def test_a_wait_without_an_epoch_ends_too_when_it_could_go_on_here(cluster: Clustered) -> None:
    """The request has no leader epoch, and this broker follows the new leader at once."""
    await cluster.make_topic("t")
    for broker in (1, 3):
        waiting = cluster[broker].client.send(fetch(0, wait_ms=60_000), 12)
        await parked(cluster, broker)
        replica = cluster.replica(broker, "t")
        replica.member.step(BeginEpoch(sender=cluster[2].node.voter, to=replica.me, epoch=Epoch(replica.epoch + 1)))
        assert replica.leader == 2
        assert (await answered(waiting)).error_code == Error.NONE
        await until(lambda: any(cluster.replica(one, "t").leads for one in cluster.ids))


@with_cluster()
async def test_a_follower_whose_leader_is_gone_is_not_read(cluster: Clustered) -> None:
    await cluster.make_topic("t")
    replica = cluster.replica(3, "t")
    replica.require_readable()
    replica.member.step(LeaderDisconnected(leader=BrokerId(1), live=(BrokerId(2),)))
    with pytest.raises(NotLeader):
        replica.require_readable()


@with_cluster()
async def test_a_follower_that_hears_nothing_sends_its_readers_away(cluster: Clustered) -> None:
    await cluster.make_topic("t", (1, 2))
    await cluster[1].produce("t", 1)
    await cluster.caught_up("t", 1, 1, 2)
    waiting = cluster[2].client.send(fetch(1, wait_ms=60_000), 12)
    await parked(cluster, 2)
    await cluster[1].node.quorums.peers.close()
    assert (await answered(waiting)).error_code == Error.NOT_LEADER_OR_FOLLOWER
    assert (await read(cluster, 2, fetch(0))).error_code == Error.NOT_LEADER_OR_FOLLOWER


@with_cluster()
async def test_offsets_and_epochs_are_the_leaders_to_tell(cluster: Clustered) -> None:
    await cluster.make_topic("t")
    offset = ListOffsetsRequest(topics=(TopicAsked(name="t", partitions=(OffsetAsked(partition=0, timestamp=-1),)),))
    ends = EpochTopic(name="t", partitions=(PartitionAsked(partition=0, leader_epoch=0),))
    for broker, error in ((1, Error.NONE), (2, Error.NOT_LEADER_OR_FOLLOWER)):
        listed = await cluster[broker].call(offset, 8)
        assert listed.topics[0].partitions[0].error_code == error
        ended = await cluster[broker].call(OffsetForLeaderEpochRequest(topics=(ends,)), 4)
        assert ended.topics[0].partitions[0].error_code == error
