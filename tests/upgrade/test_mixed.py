"""Clusters in which 0.1.0 and the tree at hand run side by side, whoever is the controller; and the way back."""

import json
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions, NewTopic

from tailrace.testing import Broker, BrokerFailed, Cluster
from tests.upgrade.releases import ROOT, make_new, make_old, old_cluster
from tests.upgrade.stored_records import unreadable_to
from tests.upgrade.test_upgrade import HEALTHY_WITHIN_S, Declared, new_records, raise_level, upgrade
from tests.upgrade.under_load import under_load, until

pytestmark = pytest.mark.long

TRIES_MAX = 20
UPGRADING = (ROOT / "docs" / "upgrading.md").read_text()
ADMIN_TIMEOUT_S = 30.0


def controller_of(cluster: Cluster) -> int:
    until(lambda: cluster.look(1).controller is not None, "there is a controller")
    controller = cluster.look(1).controller
    assert controller is not None
    return controller


def make_controller(cluster: Cluster, *wanted: int) -> None:
    """Restart controllers until one of these is the next."""
    for _ in range(TRIES_MAX):
        if controller_of(cluster) in wanted:
            return
        cluster.restart(controller_of(cluster))
        cluster.wait_until_healthy(HEALTHY_WITHIN_S)
    raise AssertionError(f"none of {wanted} became the controller")


def administer(cluster: Cluster, name: str) -> None:
    """What the controller does for clients, asked of every broker: topics begin, grow, are configured, and end."""
    for broker in cluster.ids:
        admin = AdminClient({"bootstrap.servers": cluster.broker(broker).bootstrap, "log_level": 0})
        topic = f"{name}-{broker}"
        admin.create_topics([NewTopic(topic, 3, 3)])[topic].result(ADMIN_TIMEOUT_S)
        admin.create_partitions([NewPartitions(topic, 5)])[topic].result(ADMIN_TIMEOUT_S)
        entry = ConfigEntry("retention.ms", "1234567", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
        admin.incremental_alter_configs([resource])[resource].result(ADMIN_TIMEOUT_S)
        cluster.wait_until_healthy(HEALTHY_WITHIN_S)
        admin.delete_topics([topic])[topic].result(ADMIN_TIMEOUT_S)


def test_a_new_controller_leads_brokers_of_0_1_0(old_source: Path, declared: Declared, tmp_path: Path) -> None:
    with old_cluster(old_source) as cluster, under_load(cluster, tmp_path) as load:
        upgrade(cluster, 2)
        make_controller(cluster, 2)
        administer(cluster, "a")
        cluster.restart(3)
        cluster.wait_until_healthy(HEALTHY_WITHIN_S)
        load.get_on()
        refused = raise_level(cluster, 2, "--yes")
        assert refused.code == 1
        for broker in (1, 3):
            assert f"broker {broker} supports metadata.version 1: restart it with tailrace >= 0.2.0" in refused.err
        assert "broker 2 supports" not in refused.err
        cluster.restart(2)
        cluster.wait_until_healthy(HEALTHY_WITHIN_S)
        make_controller(cluster, 2)
        assert new_records(cluster, declared) == []


def test_a_controller_of_0_1_0_leads_new_brokers(old_source: Path, declared: Declared, tmp_path: Path) -> None:
    with old_cluster(old_source) as cluster, under_load(cluster, tmp_path) as load:
        make_controller(cluster, 1)
        upgrade(cluster, 2, 3)
        make_controller(cluster, 1)
        administer(cluster, "b")
        for broker in (2, 3):
            cluster.restart(broker)
            cluster.wait_until_healthy(HEALTHY_WITHIN_S)
        load.get_on()
        assert controller_of(cluster) == 1
        refused = raise_level(cluster, 3)
        assert refused.code == 1
        told = "the release of the controller, broker 1, does not support UpdateFeatures"
        assert told in refused.err
        assert told in UPGRADING, "docs/upgrading.md says what to do"
        assert "this broker cannot raise feature levels: it runs tailrace 0.1.0" in raise_level(cluster, 1).err
        upgrade(cluster, 1)
        until(lambda: raise_level(cluster, 1).code == 0, "every broker has registered its levels with the controller")
        assert new_records(cluster, declared) == []


def test_until_the_raise_every_broker_can_go_back(old_source: Path, declared: Declared, tmp_path: Path) -> None:
    with old_cluster(old_source) as cluster, under_load(cluster, tmp_path) as load:
        upgrade(cluster, 1, 2, 3)
        load.get_on()
        for broker in cluster.ids:
            make_old(old_source, cluster.broker(broker))
            cluster.restart(broker)
            cluster.wait_until_healthy(HEALTHY_WITHIN_S)
        load.get_on()
        assert new_records(cluster, declared) == []
        upgrade(cluster, 3, 2, 1)
        until(lambda: raise_level(cluster, 2).code == 0, "every broker has registered its levels with the controller")


def test_brokers_of_both_releases_join_a_mixed_cluster(old_source: Path, declared: Declared, tmp_path: Path) -> None:
    with old_cluster(old_source) as cluster:
        upgrade(cluster, 1)
        for number, controllers in ((4, (1,)), (5, (2, 3))):
            make_controller(cluster, *controllers)
            for release, join in (("old", number), ("new", number + 10)):
                joiner = Broker(data_dir=tmp_path / f"{join}", join=cluster.bootstrap, broker_id=join)
                if release == "old":
                    make_old(old_source, joiner)
                with joiner:
                    assert join in [one.id for one in cluster.look(1).brokers if not one.is_fenced]
                    assert unreadable_to(declared["records"], joiner.data_dir) == []
        assert new_records(cluster, declared) == []


def test_after_the_raise_0_1_0_does_not_start_on_logs_that_it_cannot_read(old_source: Path, tmp_path: Path) -> None:
    """Its own code ends with an error: there is no silent way back."""
    with old_cluster(old_source) as cluster:
        upgrade(cluster, 1, 2, 3)
        until(lambda: raise_level(cluster, 2, "--json").code == 0, "every broker is ready")
        done = json.loads(raise_level(cluster, 2, "--json", "--yes").out)
        assert done["raised"] is True
        cluster.restart(2)
        cluster.wait_until_healthy(HEALTHY_WITHIN_S)
        back = cluster.broker(3)
        back.stop()
        make_old(old_source, back)
        with pytest.raises(BrokerFailed, match="exit code 1") as refused:
            back.start()
        assert "BrokerRegistered has no version 1" in str(refused.value)
        make_new(back)
        cluster.restart(3)
        cluster.wait_until_healthy(HEALTHY_WITHIN_S)
