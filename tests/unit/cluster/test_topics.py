"""Creating topics: their replicas are on live brokers and their disks, spread together with the same request's."""

from functools import partial

import pytest

from tailrace.cluster import topics
from tailrace.cluster.controller import MorePartitions, NewTopic, TopicCreated, try_each
from tailrace.cluster.image import PartitionPlace
from tailrace.model.faults import (
    Fault,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    InvalidTopicName,
    PolicyViolation,
    TopicExists,
)
from tailrace.model.ids import BrokerId
from tests.unit.cluster.cluster import Cluster, disk_of, registration


def create(cluster: Cluster, name: str, partitions: int = 1, factor: int = -1) -> TopicCreated:
    wanted = NewTopic(name=name, partitions=partitions, replication_factor=factor)
    return cluster.write(lambda controller: controller.create_topic(wanted, cluster.new_id))


def create_each(cluster: Cluster, *wanted: NewTopic) -> list[TopicCreated | Fault]:
    return cluster.write(
        lambda controller: try_each([partial(controller.create_topic, one, cluster.new_id) for one in wanted])
    )


def one_partition(name: str) -> NewTopic:
    return NewTopic(name=name, partitions=1, replication_factor=1)


def places(cluster: Cluster, topic: str) -> list[PartitionPlace]:
    return cluster.image.topics[topic].partitions


@pytest.mark.parametrize(("brokers", "factor"), [((1,), 1), ((1, 2), 2), ((1, 2, 3), 3), ((1, 2, 3, 4), 3)])
def test_nobody_says_how_many_replicas(brokers: tuple[int, ...], factor: int) -> None:
    assert create(Cluster(*brokers), "t").replication_factor == factor


def test_fenced_brokers_get_nothing_new() -> None:
    cluster = Cluster(1, 2, 3, 4)
    cluster.write(lambda controller: controller.fence(BrokerId(2)))
    create(cluster, "t", 6)
    assert all(sorted(place.replicas) == [1, 3, 4] for place in places(cluster, "t"))
    with pytest.raises(InvalidReplicationFactor, match=r"factor of 4 cannot be reached.* live brokers, 3$"):
        create(cluster, "u", factor=4)
    wanted = NewTopic(name="u", partitions=-1, replication_factor=-1, assignment={0: [1, 2]})
    with pytest.raises(InvalidReplicaAssignment, match=r"\[1, 2\].* live brokers \[1, 3, 4\]"):
        cluster.write(lambda controller: controller.create_topic(wanted, cluster.new_id))


def test_no_topic_while_nobody_is_live() -> None:
    cluster = Cluster(1)
    cluster.write(lambda controller: controller.fence(BrokerId(1)))
    with pytest.raises(InvalidReplicationFactor, match="live brokers, 0"):
        create(cluster, "t")


def test_replicas_stand_in_different_racks_on_their_brokers_disks() -> None:
    cluster = Cluster(1, 2, 3, 4, racks=("a", "a", "b", "b"))
    create(cluster, "t", 8, 2)
    for place in places(cluster, "t"):
        assert sorted((broker + 1) // 2 for broker in place.replicas) == [1, 2]
        assert place.directories == tuple(disk_of(broker) for broker in place.replicas)


def test_an_assignment_is_left_alone() -> None:
    cluster = Cluster(1, 2, 3, racks=("a", "a", "b"))
    wanted = NewTopic(name="t", partitions=-1, replication_factor=-1, assignment={0: [2, 1], 1: [2, 1]})
    cluster.write(lambda controller: controller.create_topic(wanted, cluster.new_id))
    more = MorePartitions(topic="t", total=4, assignment=[[2, 1], [1, 2]])
    cluster.write(lambda controller: controller.add_partitions(more))
    assert [place.replicas for place in places(cluster, "t")] == [(2, 1), (2, 1), (2, 1), (1, 2)]
    assert [place.directories[0] for place in places(cluster, "t")] == [disk_of(2)] * 3 + [disk_of(1)]


def test_a_grown_topic_has_the_factor_it_had_and_spreads() -> None:
    cluster = Cluster(1, 2, 3)
    create(cluster, "t", 2, 2)
    cluster.write(lambda controller: controller.add_partitions(MorePartitions(topic="t", total=6)))
    assert [len(place.replicas) for place in places(cluster, "t")] == [2] * 6
    assert sorted(place.replicas[0] for place in places(cluster, "t")) == [1, 1, 2, 2, 3, 3]


def assigned(name: str, *leaders: int) -> NewTopic:
    named = {number: [leader] for number, leader in enumerate(leaders)}
    return NewTopic(name=name, partitions=-1, replication_factor=-1, assignment=named)


def test_a_topic_grows_where_it_has_least_though_others_have_much_there() -> None:
    cluster = Cluster(1, 2, 3)
    create_each(cluster, assigned("t", 1, 2), assigned("busy", 3, 3, 3))
    cluster.write(lambda controller: controller.add_partitions(MorePartitions(topic="t", total=3)))
    assert places(cluster, "t")[2].replicas == (3,)


def test_what_was_proposed_and_not_appended_is_forgotten() -> None:
    cluster, other = Cluster(1, 2, 3), Cluster(1, 2, 3)
    cluster.controller.create_topic(one_partition("dropped"), cluster.new_id)
    for one in (cluster, other):
        one.write(lambda controller: controller.fence(BrokerId(3)))
        one.write(lambda controller: controller.register(registration(3)))
        create(one, "t", factor=1)
    assert places(cluster, "t")[0].replicas == places(other, "t")[0].replicas


def test_topics_of_one_request_spread_too() -> None:
    cluster = Cluster(1, 2, 3)
    create_each(cluster, *(one_partition(f"t{number}") for number in range(9)))
    assert cluster.image.load.preferred == {1: 3, 2: 3, 3: 3}


def test_asking_whether_a_topic_could_be_made_takes_no_name_and_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "PARTITIONS_PER_BROKER_MAX", 3)
    cluster = Cluster(1)
    for _ in range(9):
        cluster.controller.create_topic(one_partition("t"), cluster.new_id)
    assert create(cluster, "t", 3).partitions == 3
    with pytest.raises(PolicyViolation, match="broker 1 would hold 4 replicas, more than the limit of 3"):
        create(cluster, "u")


@pytest.mark.parametrize(("second", "fault"), [("a_b", InvalidTopicName), ("a.b", TopicExists)])
def test_one_request_cannot_make_two_topics_that_are_alike(second: str, fault: type[Fault]) -> None:
    cluster = Cluster()
    first, refused, third = create_each(cluster, one_partition("a.b"), one_partition(second), one_partition("c"))
    assert isinstance(first, TopicCreated)
    assert isinstance(third, TopicCreated)
    assert type(refused) is fault
    assert list(cluster.image.topics) == ["a.b", "c"]
    cluster.write(lambda controller: controller.delete_topic("a.b"))
    create(cluster, "a_b")


def test_deleting_a_topic_gives_its_load_back() -> None:
    cluster = Cluster(1, 2, 3)
    create(cluster, "t", 6)
    cluster.write(lambda controller: controller.delete_topic("t"))
    assert cluster.image.load.replicas == cluster.image.load.preferred == {1: 0, 2: 0, 3: 0}
    assert cluster.replayed().image == cluster.image


def test_two_replicas_are_worth_a_warning() -> None:
    cluster = Cluster(1, 2, 3)
    assert create(cluster, "one", factor=1).warning is None
    assert create(cluster, "three").warning is None
    assert "topic two has two replicas, and both are needed" in (create(cluster, "two", factor=2).warning or "")
