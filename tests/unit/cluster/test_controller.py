"""The controller proposes records; only replaying them changes the image."""

import pytest

from tailrace.cluster.controller import PRODUCER_IDS_PER_BLOCK, MorePartitions, NewTopic, try_each
from tailrace.cluster.features import SUPPORTED_FEATURES
from tailrace.cluster.image import Resource
from tailrace.cluster.settings import Operation, SettingChange
from tailrace.model.faults import (
    Fault,
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    InvalidSetting,
    InvalidTopicName,
    TopicExists,
    UnknownTopic,
    UnknownTopicId,
)
from tailrace.model.ids import NO_ID, BrokerId, Id
from tests.unit.cluster.cluster import Cluster


def test_an_image_is_what_its_log_says() -> None:
    cluster = Cluster(1, 2, 3)
    first = cluster.create("orders", 4, 2, retention_ms="1000")
    cluster.create("gone")
    cluster.write(lambda controller: controller.delete_topic("gone"))
    cluster.write(lambda controller: controller.add_partitions(MorePartitions(topic="orders", total=6)))
    cluster.write(lambda controller: controller.move_start(first, 5, 77))
    cluster.write(lambda controller: controller.take_producer_ids(BrokerId(1)))
    image = cluster.controller.image
    assert cluster.replayed().image == image
    assert list(image.topics) == ["orders"]
    orders = image.topics["orders"]
    assert [len(place.replicas) for place in orders.partitions] == [2] * 6
    assert orders.partitions[5].start == 77
    assert orders.settings == {"retention.ms": "1000"}
    assert list(image.removed.values()) == ["gone"]
    assert image.features == {name: levels.last for name, levels in SUPPORTED_FEATURES.items()}


def test_leaders_and_followers_spread_over_the_brokers() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.create("t", 6, 2)
    places = [place.replicas for place in cluster.controller.image.topics["t"].partitions]
    assert sorted(place[0] for place in places) == [1, 1, 2, 2, 3, 3]
    assert sorted(place[1] for place in places) == [1, 1, 2, 2, 3, 3]
    assert all(leader != follower for leader, follower in places)


@pytest.mark.parametrize(
    ("name", "partitions", "factor", "fault"),
    [
        ("", 1, 1, InvalidTopicName),
        ("..", 1, 1, InvalidTopicName),
        ("a/b", 1, 1, InvalidTopicName),
        ("x" * 250, 1, 1, InvalidTopicName),
        ("__cluster_metadata", 1, 1, InvalidTopicName),
        ("there", 1, 1, TopicExists),
        ("dotted_name", 1, 1, InvalidTopicName),
        ("t", 0, 1, InvalidPartitions),
        ("t", 100_000, 1, InvalidPartitions),
        ("t", 1, 2, InvalidReplicationFactor),
        ("t", 1, 0, InvalidReplicationFactor),
    ],
)
def test_topics_that_cannot_be(name: str, partitions: int, factor: int, fault: type[Fault]) -> None:
    cluster = Cluster()
    cluster.create("there")
    cluster.create("dotted.name")
    before = list(cluster.log)
    with pytest.raises(fault):
        cluster.create(name, partitions, factor)
    assert cluster.log == before


@pytest.mark.parametrize("assignment", [{1: [1]}, {0: []}, {0: [1, 1]}, {0: [9]}])
def test_assignments_that_cannot_be(assignment: dict[int, list[int]]) -> None:
    wanted = NewTopic(name="t", partitions=-1, replication_factor=-1, assignment=assignment)
    with pytest.raises(InvalidReplicaAssignment):
        Cluster().write(lambda controller: controller.create_topic(wanted, lambda: NO_ID))


def test_partitions_only_grow() -> None:
    cluster = Cluster()
    cluster.create("t", 3)
    for total in (0, 2, 3, 10_001):
        with pytest.raises(InvalidPartitions):
            cluster.write(lambda controller, n=total: controller.add_partitions(MorePartitions(topic="t", total=n)))  # type: ignore[misc]


def test_unknown_topics() -> None:
    cluster = Cluster()
    with pytest.raises(UnknownTopic):
        cluster.write(lambda controller: controller.delete_topic("nobody"))
    with pytest.raises(UnknownTopicId):
        cluster.write(lambda controller: controller.delete_topic(Id(b"x" * 16)))


def test_producer_ids_never_repeat() -> None:
    cluster = Cluster()
    taken = [cluster.write(lambda controller: controller.take_producer_ids(BrokerId(1))) for _ in range(3)]
    numbers = [number for block in taken for number in block]
    assert len(set(numbers)) == 3 * PRODUCER_IDS_PER_BLOCK
    assert cluster.replayed().image.next_producer_id > max(numbers)


def test_one_bad_request_does_not_spoil_the_others() -> None:
    cluster = Cluster()
    names = ["good", "b@d", "fine"]
    wanted = [NewTopic(name=name, partitions=1, replication_factor=1) for name in names]
    answers = cluster.write(
        lambda controller: try_each(
            [lambda one=one: controller.create_topic(one, cluster.new_id) for one in wanted]  # type: ignore[misc]
        )
    )
    assert isinstance(answers[1], InvalidTopicName)
    assert list(cluster.controller.image.topics) == ["good", "fine"]


def change(name: str, operation: Operation, value: str | None) -> SettingChange:
    return SettingChange(name=name, operation=operation, value=value)


def test_settings_change_all_or_none() -> None:
    cluster = Cluster()
    cluster.create("t")
    good = change("retention.ms", Operation.SET, "5")
    with pytest.raises(InvalidSetting):
        cluster.write(
            lambda controller: controller.change_settings(
                Resource.TOPIC, "t", [good, change("segment.bytes", Operation.SET, "many")]
            )
        )
    assert cluster.controller.image.topics["t"].settings == {}
    cluster.write(lambda controller: controller.change_settings(Resource.TOPIC, "t", [good]))
    assert cluster.controller.image.topics["t"].settings == {"retention.ms": "5"}
    back = change("retention.ms", Operation.DELETE, None)
    cluster.write(lambda controller: controller.change_settings(Resource.TOPIC, "t", [back]))
    assert cluster.controller.image.topics["t"].settings == {}


@pytest.mark.parametrize(
    ("resource", "changed"),
    [
        (Resource.TOPIC, change("no.such.setting", Operation.SET, "1")),
        (Resource.TOPIC, change("cleanup.policy", Operation.SET, "shred")),
        (Resource.TOPIC, change("cleanup.policy", Operation.APPEND, "shred")),
        (Resource.TOPIC, change("retention.ms", Operation.APPEND, "1")),
        (Resource.TOPIC, change("retention.ms", Operation.SET, None)),
        (Resource.TOPIC, change("unclean.leader.election.enable", Operation.SET, "true")),
        (Resource.BROKER, change("data.dir", Operation.SET, "/tmp")),
        (Resource.BROKER, change("log.retention.ms", Operation.SET, "soon")),
    ],
)
def test_settings_that_cannot_be(resource: Resource, changed: SettingChange) -> None:
    cluster = Cluster()
    cluster.create("t")
    owner = "t" if resource is Resource.TOPIC else "1"
    with pytest.raises(InvalidSetting, match=changed.name):
        cluster.write(lambda controller: controller.change_settings(resource, owner, [changed]))
