"""Levels of features: where a new cluster starts, what may be raised, and why something may not."""

import pytest

from tailrace.cluster.controller import Controller
from tailrace.cluster.feature_updates import FeatureUpdate, raisable
from tailrace.cluster.features import (
    FEATURES_OF_0_1_0,
    METADATA_VERSION,
    NEWEST_LEVEL,
    SHARE_VERSION,
    SUPPORTED_FEATURES,
    Features,
    LevelRange,
)
from tailrace.model.faults import InvalidUpdateVersion
from tailrace.model.ids import BrokerId
from tests.unit.cluster.cluster import Cluster, registration

OLD, NEW = FEATURES_OF_0_1_0, SUPPORTED_FEATURES


def raise_to(cluster: Cluster, level: int, name: str = METADATA_VERSION, *, may_lower: bool = False) -> None:
    update = FeatureUpdate(name=name, level=level, may_lower=may_lower)
    cluster.write(lambda controller: controller.update_features([update]))


def upgraded(*brokers: Features, fenced: tuple[int, ...] = ()) -> Cluster:
    """A cluster that 0.1.0 founded; these are the features of its brokers, from 1 on, by now. The controller is new."""
    cluster = Cluster(*range(1, len(brokers) + 1), features=OLD)
    for number, features in enumerate(brokers, start=1):
        one = registration(number, life=2, features=features)
        cluster.write(lambda controller, one=one: controller.register(one))  # type: ignore[misc]
    for number in fenced:
        cluster.write(lambda controller, number=number: controller.fence(BrokerId(number)))  # type: ignore[misc]
    cluster.controller.supported = NEW
    return cluster


def test_a_new_cluster_starts_at_the_newest_level() -> None:
    assert Cluster(1).image.features == {
        "metadata.version": 4,
        "group.version": 1,
        "transaction.version": 2,
        "share.version": 1,
    }
    assert Cluster(1).image.level == NEWEST_LEVEL


def test_a_cluster_is_founded_once_and_a_new_release_raises_nothing() -> None:
    cluster = upgraded(NEW, NEW)
    written = len(cluster.log)
    cluster.write(lambda controller: controller.found())
    assert (len(cluster.log), cluster.image.level) == (written, 1)


def test_a_cluster_without_levels_is_founded_at_one_that_its_brokers_support() -> None:
    """0.1.0 may have stopped before it could write the levels: whoever had joined by then counts."""
    controller = Controller()
    for record in controller.register(registration(1, features=OLD)).records:
        controller.replay(record)  # type: ignore[arg-type]
    levels = {one.name: one.level for one in controller.found().records}  # type: ignore[attr-defined]
    assert levels == {"metadata.version": 1, "group.version": 1, "transaction.version": 2}


def test_when_every_broker_is_ready_the_level_is_raised_and_stays() -> None:
    cluster = upgraded(NEW, NEW, NEW)
    assert raisable(cluster.image, NEW) == {METADATA_VERSION: 4, SHARE_VERSION: 1}
    raise_to(cluster, 4)
    assert cluster.image.level == 4
    assert raisable(cluster.image, NEW) == {}
    assert cluster.replayed().image == cluster.image


def test_raising_to_the_level_in_force_changes_nothing() -> None:
    cluster = Cluster(1)
    written = len(cluster.log)
    raise_to(cluster, 4)
    raise_to(cluster, 4, may_lower=True)
    raise_to(cluster, 1, SHARE_VERSION)
    assert len(cluster.log) == written


@pytest.mark.parametrize(
    ("brokers", "fenced", "why"),
    [
        (
            (NEW, OLD, NEW),
            (),
            ["broker 2 supports metadata.version 1: restart it with tailrace >= 0.2.0"],
        ),
        (
            (NEW, NEW, OLD),
            (3,),
            [
                "broker 3, which is fenced, supports metadata.version 1: start it with tailrace >= 0.2.0 "
                "(if its machine is gone, start a new broker with --broker-id 3 and an empty data directory)"
            ],
        ),
        (
            (OLD, OLD, OLD),
            (2,),
            ["broker 1 supports", "broker 2, which is fenced, supports", "broker 3 supports"],
        ),
    ],
)
def test_brokers_that_are_not_ready_are_named(
    brokers: tuple[Features, ...], fenced: tuple[int, ...], why: list[str]
) -> None:
    cluster = upgraded(*brokers, fenced=fenced)
    assert raisable(cluster.image, NEW) == {}
    with pytest.raises(InvalidUpdateVersion) as refused:
        raise_to(cluster, 2)
    text = str(refused.value)
    assert text.startswith("metadata.version cannot be raised to 2 yet: ")
    assert [one in text for one in why] == [True] * len(why)
    assert text.count("supports metadata.version") == len(why)
    assert cluster.image.level == 1


def test_a_broker_that_was_replaced_is_ready() -> None:
    cluster = upgraded(NEW, NEW, OLD, fenced=(3,))
    cluster.write(lambda controller: controller.register(registration(3, disk=99)))
    raise_to(cluster, 2)
    assert cluster.image.level == 2


@pytest.mark.parametrize(
    ("name", "level", "may_lower", "why"),
    [
        (METADATA_VERSION, 1, False, "metadata.version is at level 4 and cannot be lowered to 1: a raise cannot be"),
        (METADATA_VERSION, 1, True, "cannot be lowered to 1: a raise cannot be undone"),
        (METADATA_VERSION, 0, True, "cannot be lowered to 0"),
        (METADATA_VERSION, -1, False, "cannot be lowered to -1"),
        (METADATA_VERSION, 5, False, "the controller supports metadata.version 1 to 4, not 5"),
        (METADATA_VERSION, 5, True, "going to 5 is an upgrade, not a downgrade"),
        ("transaction.version", 1, True, "transaction.version is at level 2 and cannot be lowered to 1"),
        (SHARE_VERSION, 0, True, "share.version is at level 1 and cannot be lowered to 0"),
        (SHARE_VERSION, 2, False, "the controller supports share.version 0 to 1, not 2"),
        ("kraft.version", 1, False, "there is no feature kraft.version; there are metadata.version, group.version"),
    ],
)
def test_what_cannot_be_set_is_refused_with_the_reason(name: str, level: int, may_lower: bool, why: str) -> None:
    cluster = Cluster(1, 2)
    written = len(cluster.log)
    with pytest.raises(InvalidUpdateVersion) as refused:
        raise_to(cluster, level, name, may_lower=may_lower)
    assert why in str(refused.value)
    assert len(cluster.log) == written


def test_share_version_follows_metadata_version() -> None:
    cluster = upgraded(NEW, NEW)
    with pytest.raises(InvalidUpdateVersion, match=r"share\.version 1 needs metadata\.version 3"):
        raise_to(cluster, 1, SHARE_VERSION)
    raise_to(cluster, 2)
    assert SHARE_VERSION not in cluster.image.features
    raise_to(cluster, 3)
    assert cluster.image.features[SHARE_VERSION] == 1


def test_both_are_raised_together_if_both_are_named() -> None:
    cluster = upgraded(NEW, NEW)
    both = [FeatureUpdate(name=SHARE_VERSION, level=1), FeatureUpdate(name=METADATA_VERSION, level=3)]
    cluster.write(lambda controller: controller.update_features(both))
    assert (cluster.image.level, cluster.image.features[SHARE_VERSION]) == (3, 1)


def test_a_cluster_below_the_level_of_share_groups_is_founded_without_share_version() -> None:
    controller = Controller({**NEW, METADATA_VERSION: LevelRange(1, 2)})
    levels = {one.name: one.level for one in controller.found().records}  # type: ignore[attr-defined]
    assert levels == {"metadata.version": 2, "group.version": 1, "transaction.version": 2}


def test_of_several_updates_all_or_none_are_made() -> None:
    cluster = upgraded(NEW, NEW)
    good, bad = FeatureUpdate(name=METADATA_VERSION, level=2), FeatureUpdate(name="group.version", level=9)
    with pytest.raises(InvalidUpdateVersion, match=r"group\.version 1, not 9"):
        cluster.write(lambda controller: controller.update_features([good, bad]))
    assert cluster.image.level == 1


def test_a_broker_of_a_later_release_does_not_hold_a_raise_up() -> None:
    cluster = upgraded(NEW, {**NEW, METADATA_VERSION: LevelRange(1, 4)})
    raise_to(cluster, 2)
    assert cluster.image.level == 2
