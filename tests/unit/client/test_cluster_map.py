"""`tailrace.client.cluster_map`: what metadata and hints teach, in whatever order they come."""

import pytest

from tailrace.client.cluster_map import ClusterMap, CoordinatorKey
from tailrace.client.faults import WrongCluster
from tailrace.model.addresses import Address
from tailrace.model.ids import NO_ID, Id, PartitionName
from tailrace.wire.errors import Error
from tailrace.wire.messages.leaders import LeaderIdAndEpoch, NodeEndpoint
from tailrace.wire.messages.metadata import BrokerMetadata, MetadataResponse, PartitionMetadata, TopicMetadata

ZERO = PartitionName("t", 0)


def metadata(
    leader: int, epoch: int, *, cluster: str = "one", topic_id: bytes = b"i" * 16, code: int = 0
) -> MetadataResponse:
    part = PartitionMetadata(partition=0, leader_id=leader, leader_epoch=epoch, replicas=(1, 2), isr=(1, 2))
    topic = TopicMetadata(error_code=code, name="t", topic_id=Id(topic_id), partitions=(part,) if not code else ())
    brokers = tuple(BrokerMetadata(node_id=one, host=f"b{one}", port=one) for one in (1, 2))
    return MetadataResponse(brokers=brokers, cluster_id=cluster, controller_id=1, topics=(topic,))


def at(number: int) -> Address:
    return Address(f"b{number}", number)


def test_a_leader_of_an_earlier_epoch_is_not_taken() -> None:
    found = ClusterMap()
    for leader, epoch, expected in ((1, 5, 1), (2, 4, 1), (2, 6, 2), (1, 6, 1)):
        found.update(metadata(leader, epoch))
        assert found.leader(ZERO) == at(expected)


def test_a_forgotten_leader_keeps_its_epoch() -> None:
    found = ClusterMap()
    found.update(metadata(1, 5))
    found.forget_leader(ZERO)
    assert found.leader(ZERO) is None
    found.update(metadata(2, 4))
    assert found.leader(ZERO) is None
    found.update(metadata(1, 5))
    assert found.leader(ZERO) == at(1)


def test_a_hint_is_news_only_with_a_later_epoch() -> None:
    found = ClusterMap()
    found.update(metadata(1, 5))
    there = [NodeEndpoint(node_id=3, host="b3", port=3)]
    assert not found.hint(ZERO, LeaderIdAndEpoch(), there)
    assert not found.hint(ZERO, LeaderIdAndEpoch(leader_id=3, leader_epoch=5), there)
    assert found.hint(ZERO, LeaderIdAndEpoch(leader_id=3, leader_epoch=6), there)
    assert found.leader(ZERO) == at(3)
    assert not found.hint(ZERO, LeaderIdAndEpoch(leader_id=3, leader_epoch=6), there)


def test_a_recreated_topic_begins_anew() -> None:
    found = ClusterMap()
    found.update(metadata(1, 5, topic_id=b"a" * 16))
    found.update(metadata(2, 0, topic_id=b"b" * 16))
    assert found.leader(ZERO) == at(2)
    found.update(metadata(-1, -1, code=Error.UNKNOWN_TOPIC_OR_PARTITION))
    assert not found.has_topic("t")
    assert found.leader(ZERO) is None


def test_without_topic_ids_the_last_answer_counts() -> None:
    found = ClusterMap()
    found.update(metadata(1, 5, topic_id=NO_ID))
    found.update(metadata(2, 0, topic_id=NO_ID))
    assert found.leader(ZERO) == at(2)


def test_another_cluster_is_refused() -> None:
    found = ClusterMap()
    found.update(metadata(1, 5))
    with pytest.raises(WrongCluster, match="cluster two answers, expected one"):
        found.update(metadata(1, 6, cluster="two"))
    assert found.leader_epoch(ZERO) == 5


def test_a_broker_that_does_not_answer_coordinates_nothing() -> None:
    found = ClusterMap()
    key, other = CoordinatorKey(0, "g"), CoordinatorKey(1, "g")
    found.learn_coordinator(key, at(1))
    found.learn_coordinator(other, at(2))
    found.forget_address(at(1))
    assert found.coordinator(key) is None
    assert found.coordinator(other) == at(2)
