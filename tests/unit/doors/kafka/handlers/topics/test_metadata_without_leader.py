"""Metadata while a partition has no leader: LEADER_NOT_AVAILABLE, so that clients retry; not the previous leader."""

from typing import Any

from tailrace.broker.partitions.partition import Partition
from tailrace.model.ids import BrokerId, Epoch, Offset
from tailrace.raft.events import LeaderDisconnected
from tailrace.raft.messages import VoteRequest
from tailrace.raft.voters import Voter
from tailrace.wire.errors import Error
from tailrace.wire.messages.metadata import MetadataRequest, TopicWanted
from tests.unit.doors.kafka.clustered import Clustered, with_cluster
from tests.unit.doors.kafka.hostile import until


async def led_by(cluster: Clustered, broker: int) -> tuple[Error, int]:
    """Error and leader of the topic's first partition in a broker's Metadata response."""
    answer: Any = await cluster[broker].call(MetadataRequest(topics=(TopicWanted(name="t"),)), 9)
    one = answer.topics[0].partitions[0]
    return Error(one.error_code), one.leader_id


def lose_the_leader(follower: Partition) -> None:
    """As a reset connection does; others stand before this one."""
    follower.member.step(LeaderDisconnected(BrokerId(1), (BrokerId(2),)))


@with_cluster()
async def test_a_follower_whose_leader_was_reset_names_nobody(cluster: Clustered) -> None:
    await cluster.make_topic("t")
    assert await led_by(cluster, 3) == (Error.NONE, 1)
    lose_the_leader(cluster.replica(3, "t"))
    assert cluster[3].node.control.leaders.one(cluster[3].node.hosted.image.topics["t"], 0).leader == -1
    assert await led_by(cluster, 2) == (Error.NONE, 1)  # which still hears it
    await until(lambda: not cluster.replica(3, "t").member.leader_is_gone)  # it is there after all
    assert await led_by(cluster, 3) == (Error.NONE, 1)


@with_cluster()
async def test_a_voter_in_an_epoch_without_a_leader_names_nobody(cluster: Clustered) -> None:
    await cluster.make_topic("t")
    voter = cluster.replica(3, "t")
    nobody_elected = Voter(broker=BrokerId(2), directory=cluster[2].node.voter.directory)
    lose_the_leader(voter)
    begun = Epoch(voter.epoch + 1)
    request = VoteRequest(
        sender=nobody_elected, to=voter.me, epoch=begun, end=Offset(0), last_epoch=Epoch(-1), pre=False
    )
    voter.member.step(request)
    assert voter.leader is None
    assert cluster[3].node.control.leaders.one(cluster[3].node.hosted.image.topics["t"], 0).leader == -1
    await until(lambda: cluster.replica(3, "t").leader is not None)
