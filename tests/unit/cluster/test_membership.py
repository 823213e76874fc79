"""Joining, registering and fencing brokers: which disk may have which broker id."""

from typing import Any

import pytest

from tailrace.cluster.features import FEATURES_OF_0_1_0, SUPPORTED_FEATURES
from tailrace.cluster.image import Image
from tailrace.cluster.membership import Joining
from tailrace.model.addresses import Address
from tailrace.model.faults import DuplicateBroker, UnsupportedVersion
from tailrace.model.ids import BrokerId, Id
from tests.unit.cluster.cluster import Cluster, disk_of, numbered, registration


def joining(disk: int, wanted: int | None = None, life: int = 1, **other: Any) -> Joining:
    given = {"peer": Address(f"d{disk}", 7000), "rack": None, "features": SUPPORTED_FEATURES, **other}
    number = None if wanted is None else BrokerId(wanted)
    return Joining(directory=numbered(disk), wanted=number, incarnation=numbered(life), **given)


def join(cluster: Cluster, disk: int, wanted: int | None = None, life: int = 1, rack: str | None = None) -> int:
    one = joining(disk, wanted, life, rack=rack)
    return cluster.write(lambda controller: controller.join(one))


def fence(cluster: Cluster, broker: int) -> None:
    cluster.write(lambda controller: controller.fence(BrokerId(broker)))


def register(cluster: Cluster, broker: int, *, disk: int = 0, life: int = 1) -> None:
    cluster.write(lambda controller: controller.register(registration(broker, disk=disk, life=life)))


def disk(image: Image, broker: int) -> Id:
    return image.brokers[BrokerId(broker)].directory


def test_who_joins_has_a_number_and_gets_no_work_until_it_serves() -> None:
    cluster = Cluster(1)
    assert join(cluster, disk=20, rack="r") == 2
    two = cluster.image.brokers[BrokerId(2)]
    assert (two.peer_host, two.peer_port, two.kafka_port, two.rack, two.fenced) == ("d20", 7000, 0, "r", True)
    assert cluster.image.live == [1]
    register(cluster, 2, disk=20)
    assert cluster.image.live == [1, 2]
    assert (cluster.image.brokers[BrokerId(2)].host, cluster.image.brokers[BrokerId(2)].kafka_port) == ("h2", 9002)


def test_joiners_get_the_next_free_number_and_the_same_disk_its_own_again() -> None:
    cluster = Cluster(1)
    assert [join(cluster, disk=20), join(cluster, disk=30, wanted=7), join(cluster, disk=40)] == [2, 7, 3]
    assert join(cluster, disk=20, life=2) == 2
    assert join(cluster, disk=30, wanted=7, life=2) == 7
    assert list(cluster.image.brokers) == [1, 2, 7, 3]


def test_a_join_that_is_asked_again_does_not_fence_who_serves_by_now() -> None:
    cluster = Cluster(1)
    join(cluster, disk=20, life=5)
    register(cluster, 2, disk=20, life=5)
    written = len(cluster.log)
    assert join(cluster, disk=20, life=5) == 2
    assert (len(cluster.log), cluster.image.live) == (written, [1, 2])
    join(cluster, disk=20, life=6)
    assert cluster.image.live == [1], "another life does not serve yet"


def test_the_second_broker_with_a_number_is_refused_with_both_addresses() -> None:
    cluster = Cluster(1, 2)
    said = r"broker 2 is alive at h2:9002 .* reach at d20:7000 cannot be broker 2 too"
    with pytest.raises(DuplicateBroker, match=said):
        join(cluster, disk=20, wanted=2)
    with pytest.raises(DuplicateBroker, match="reach at p2:7002 cannot"):
        register(cluster, 2, disk=20)
    assert disk(cluster.image, 2) == disk_of(2)


def test_who_has_no_port_yet_is_named_by_its_host_alone() -> None:
    cluster = Cluster(1, 2)
    with pytest.raises(DuplicateBroker, match="the one that asks from h cannot be broker 2 too"):
        cluster.write(lambda controller: controller.join(joining(20, wanted=2, peer=Address("h", 0))))


def test_the_number_of_a_fenced_broker_may_go_to_another_disk() -> None:
    for take_over in (lambda cluster: join(cluster, disk=20, wanted=2), lambda cluster: register(cluster, 2, disk=20)):
        cluster = Cluster(1, 2)
        fence(cluster, 2)
        take_over(cluster)
        assert disk(cluster.image, 2) == numbered(20)


def test_of_two_that_joined_with_one_number_the_first_to_serve_has_it() -> None:
    cluster = Cluster(1)
    assert join(cluster, disk=20, wanted=2) == join(cluster, disk=30, wanted=2) == 2
    register(cluster, 2, disk=20)
    with pytest.raises(DuplicateBroker):
        register(cluster, 2, disk=30)


def test_a_disk_cannot_have_two_numbers() -> None:
    cluster = Cluster(1)
    join(cluster, disk=20)
    with pytest.raises(DuplicateBroker, match="broker 2's, it cannot be broker 5's"):
        join(cluster, disk=20, wanted=5)


def test_fencing_is_written_once() -> None:
    cluster = Cluster(1, 2, 3)
    written = len(cluster.log)
    for _ in range(2):
        fence(cluster, 2)
    assert (cluster.image.live, len(cluster.log)) == ([1, 3], written + 1)
    fence(cluster, 9)
    assert len(cluster.log) == written + 1, "nobody knows broker 9"
    assert cluster.replayed().image == cluster.image


def test_a_registration_unfences_and_says_nothing_twice() -> None:
    cluster = Cluster(1, 2)
    fence(cluster, 2)
    register(cluster, 2, life=2)
    assert cluster.image.live == [1, 2]
    written = len(cluster.log)
    register(cluster, 2, life=2)
    assert len(cluster.log) == written


def test_a_broker_that_does_not_support_the_level_in_force_is_refused_by_name() -> None:
    cluster = Cluster(1, 2)
    why = (
        r"broker 2 supports metadata\.version 1, the cluster is at metadata\.version 4: start it with tailrace >= 0\.2"
    )
    with pytest.raises(UnsupportedVersion, match=why):
        cluster.write(lambda controller: controller.register(registration(2, life=2, features=FEATURES_OF_0_1_0)))
    with pytest.raises(UnsupportedVersion, match="broker 3 supports"):
        cluster.write(lambda controller: controller.join(joining(30, features=FEATURES_OF_0_1_0)))
    assert list(cluster.image.brokers) == [1, 2]


def test_brokers_of_two_releases_share_a_cluster_at_the_older_ones_level() -> None:
    cluster = Cluster(1, 2, features=FEATURES_OF_0_1_0)
    cluster.write(lambda controller: controller.register(registration(2, life=2)))
    assert cluster.write(lambda controller: controller.join(joining(30))) == 3
    supported = [broker.features for broker in cluster.image.brokers.values()]
    assert supported == [FEATURES_OF_0_1_0, SUPPORTED_FEATURES, SUPPORTED_FEATURES]
    assert cluster.replayed().image == cluster.image
