"""DescribeQuorum: voters and observers of the metadata log, the same from every broker."""

from tailrace.model.ids import NO_ID
from tailrace.wire.errors import Error
from tailrace.wire.messages.describe_quorum import DescribeQuorumRequest, PartitionToDescribe, TopicToDescribe
from tests.unit.doors.kafka.clustered import Clustered, with_cluster
from tests.unit.doors.kafka.hostile import until
from tests.unit.doors.kafka.served import versions


def described(*partitions: tuple[str, int]) -> DescribeQuorumRequest:
    return DescribeQuorumRequest(
        topics=tuple(
            TopicToDescribe(name=name, partitions=(PartitionToDescribe(partition=index),)) for name, index in partitions
        )
    )


def voters_of(cluster: Clustered) -> int:
    return len(cluster[1].node.metadata.replica.voters)


@with_cluster(4)
async def test_every_broker_describes_the_metadatas_quorum(cluster: Clustered) -> None:
    await until(lambda: voters_of(cluster) == 3)
    leader = cluster[1].node.metadata
    await until(lambda: leader.high_watermark == leader.log.end)
    await until(lambda: all(peer.end == leader.log.end for peer in leader.replica.peers()))
    for broker in cluster.ids:
        for version in versions(55):
            answer = await cluster[broker].call(described(("__cluster_metadata", 0)), version)
            assert answer.error_code == 0
            (quorum,) = answer.topics[0].partitions
            assert (quorum.error_code, quorum.leader_id, quorum.leader_epoch) == (0, 1, leader.epoch)
            assert quorum.high_watermark == leader.high_watermark
            assert [one.replica_id for one in quorum.current_voters] == [1, 2, 3]
            assert [one.replica_id for one in quorum.observers] == [4]
            everybody = (*quorum.current_voters, *quorum.observers)
            assert all(one.log_end_offset == leader.log.end for one in everybody)
            now_ms = cluster[1].node.ports.clock.wall_ms()
            for one in everybody:
                times = (one.last_fetch_timestamp_ms, one.last_caught_up_timestamp_ms)
                assert all(now_ms - 5000 < at <= now_ms for at in times) if version >= 1 else times == (-1, -1)
                directory = cluster[one.replica_id].node.voter.directory
                assert one.replica_directory_id == (directory if version >= 2 else NO_ID)
            nodes = [(node.node_id, [(one.name, one.port) for one in node.listeners]) for node in answer.nodes]
            assert nodes == ([] if version < 2 else [(one, listeners(cluster, one)) for one in (1, 2, 3)])


def listeners(cluster: Clustered, broker: int) -> list[tuple[str, int]]:
    node = cluster[broker].node
    return [("PLAINTEXT", node.kafka_port), ("PEERS", node.peer_port)]


@with_cluster(2)
async def test_no_other_quorum_is_described(cluster: Clustered) -> None:
    await cluster.make_topic("t")
    for name, index in (("t", 0), ("never", 0), ("__cluster_metadata", 1)):
        answer = await cluster[2].call(described((name, index)), 2)
        (refused,) = answer.topics[0].partitions
        assert (refused.error_code, refused.leader_id) == (Error.UNKNOWN_TOPIC_OR_PARTITION, -1)
        assert f"not {name}-{index}" in refused.error_message


@with_cluster(2)
async def test_a_replica_that_stopped_fetching_is_seen_by_its_timestamps(cluster: Clustered) -> None:
    await cluster[2].node.quorums.peers.close()
    await cluster[1].make_topic("t")
    end = cluster[1].node.metadata.log.end
    answer = await cluster[1].call(described(("__cluster_metadata", 0)), 2)
    (behind,) = answer.topics[0].partitions[0].observers
    assert behind.log_end_offset < end
    (leader,) = answer.topics[0].partitions[0].current_voters
    assert behind.last_caught_up_timestamp_ms <= behind.last_fetch_timestamp_ms < leader.last_fetch_timestamp_ms
