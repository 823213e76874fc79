"""Produce and Fetch refused by a broker that is not the leader: the response names leader and address (KIP-951)."""

from typing import Any

from tailrace.broker.services.topics import NO_HINT
from tailrace.model.faults import NotLeader
from tailrace.model.ids import Epoch, Id
from tailrace.raft.messages import EpochSeen
from tailrace.records.build import build_batch
from tailrace.records.record import NewRecord
from tailrace.wire.errors import Error
from tailrace.wire.messages.fetch import FetchRequest, PartitionToFetch, TopicToFetch
from tailrace.wire.messages.produce import PartitionToProduce, ProduceRequest, TopicToProduce
from tests.unit.doors.kafka.clustered import Clustered, with_cluster
from tests.unit.doors.kafka.hostile import until

refused = Error.NOT_LEADER_OR_FOLLOWER


def batch_for(topic_id: Id, name: str = "t") -> ProduceRequest:
    records = bytes(build_batch([NewRecord(value=b"v", timestamp=1)]))
    topic = TopicToProduce(name=name, topic_id=topic_id, partitions=(PartitionToProduce(partition=0, records=records),))
    return ProduceRequest(acks=-1, timeout_ms=5000, topics=(topic,))


def fetch(topic_id: Id, *, offset: int = 0, epoch: int = -1, name: str = "t") -> FetchRequest:
    wanted = PartitionToFetch(partition=0, fetch_offset=offset, current_leader_epoch=epoch, partition_max_bytes=10**6)
    topic = TopicToFetch(name=name, topic_id=topic_id, partitions=(wanted,))
    return FetchRequest(max_wait_ms=0, min_bytes=0, topics=(topic,))


def hinted(answer: Any) -> tuple[int, int, int]:
    """The error, the leader that the response names, and its epoch."""
    one = answer.topics[0].partitions[0]
    return one.error_code, one.current_leader.leader_id, one.current_leader.leader_epoch


def endpoints(answer: Any) -> list[tuple[int, str, int, str]]:
    return [(one.node_id, one.host, one.port, one.rack) for one in answer.node_endpoints]


def endpoint_of(cluster: Clustered, broker: int) -> tuple[int, str, int, str]:
    return broker, "127.0.0.1", cluster[broker].node.kafka_port, f"r{broker}"


@with_cluster()
async def test_brokers_that_are_not_the_leader_name_it_in_a_produce_response(cluster: Clustered) -> None:
    topic_id = await cluster.make_topic("t", (2, 1))
    epoch = cluster.replica(2, "t").epoch
    for broker in (1, 3):
        for version in range(9, 14):
            answer = await cluster[broker].call(batch_for(topic_id), version)
            if version < 10:
                assert (hinted(answer), endpoints(answer)) == ((refused, -1, -1), [])
            else:
                assert (hinted(answer), endpoints(answer)) == ((refused, 2, epoch), [endpoint_of(cluster, 2)])
    assert hinted(await cluster[2].call(batch_for(topic_id), 13))[0] == Error.NONE


@with_cluster()
async def test_a_broker_without_a_replica_names_the_leader_in_a_fetch_response(cluster: Clustered) -> None:
    topic_id = await cluster.make_topic("t", (2, 1))
    epoch = cluster.replica(2, "t").epoch
    for version in range(11, 19):
        answer = await cluster[3].call(fetch(topic_id), version)
        assert hinted(answer) == (refused, *((2, epoch) if version >= 12 else (-1, -1)))
        assert endpoints(answer) == ([endpoint_of(cluster, 2)] if version >= 16 else [])


@with_cluster()
async def test_a_fenced_leader_epoch_is_answered_with_the_current_one(cluster: Clustered) -> None:
    topic_id = await cluster.make_topic("t")
    over = cluster.replica(1, "t").epoch
    await cluster.move("t", 2)
    leads = cluster.replica(2, "t").epoch
    for broker in (2, 1):  # the leader, and the previous leader
        answer = await cluster[broker].call(fetch(topic_id, epoch=over), 17)
        assert hinted(answer) == (Error.FENCED_LEADER_EPOCH, 2, leads)
        assert endpoints(answer) == [endpoint_of(cluster, 2)]


@with_cluster(auto_leader_rebalance_enable=False)
async def test_the_previous_leader_names_its_successor_before_the_controller_knows_it(cluster: Clustered) -> None:
    topic_id = await cluster.make_topic("t")
    reported = cluster[1].node.hosted.image.topics["t"].partitions[0]
    await until(lambda: reported.leader == 1)
    cluster[2].node.control.duties._unreported = Dropped()  # it leads, but does not report it
    await cluster.move("t", 2)
    answer = await cluster[1].call(batch_for(topic_id), 13)
    assert hinted(answer) == (refused, 2, cluster.replica(2, "t").epoch)
    assert reported.leader != 2


class Dropped(dict[Any, None]):
    """Keeps nothing."""

    def __setitem__(self, key: Any, value: None) -> None: ...


@with_cluster()
async def test_no_leader_is_named_when_none_is_known(cluster: Clustered) -> None:
    """Two of three brokers lose their peer connections: the leader resigns, and none is elected."""
    topic_id = await cluster.make_topic("t")
    for broker in (2, 3):
        await cluster[broker].node.quorums.peers.close()
    await until(lambda: cluster.replica(1, "t").leader is None)
    assert hinted(await cluster[1].call(batch_for(topic_id), 13)) == (refused, -1, -1)


@with_cluster()
async def test_the_reported_leader_is_not_named_once_a_higher_epoch_was_seen(cluster: Clustered) -> None:
    await cluster.make_topic("t")
    node, replica = cluster[3].node, cluster.replica(3, "t")
    await until(lambda: node.hosted.image.topics["t"].partitions[0].leader == 1)
    fault = NotLeader("not here")
    assert node.services.topics.leader_hint("t", 0, fault) == (1, replica.epoch)
    replica.member.step(EpochSeen(sender=cluster[2].node.voter, to=replica.me, epoch=Epoch(replica.epoch + 1)))
    assert node.services.topics.leader_hint("t", 0, fault) == NO_HINT
