"""`tailrace.local.cluster`: brokers that start together, find each other again, and report what is wrong."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tailrace.local.broker import BrokerFailed, LocalBroker
from tailrace.local.cluster import LocalCluster, local_cluster
from tailrace.local.cluster_view import NoView
from tailrace.model.settings import SettingError

DEADLINE_S = 60.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster[LocalBroker]]:
    """One for all tests of this module; each leaves it healthy."""
    with local_cluster(3, base_port=0, fsync="never") as cluster:
        yield cluster


def make_topic(cluster: LocalCluster[LocalBroker], name: str) -> None:
    client = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    client.create_topics([NewTopic(name, 1, 3)])[name].result(DEADLINE_S)
    cluster.wait_until_healthy(DEADLINE_S)


def test_every_broker_describes_the_same_cluster(cluster: LocalCluster[LocalBroker]) -> None:
    views = [cluster.look(one) for one in cluster.ids]
    assert len({view.cluster_id for view in views}) == 1
    assert all([one.id for one in view.brokers] == [1, 2, 3] for view in views)
    assert cluster.bootstrap == ",".join(one.bootstrap for one in cluster.brokers)
    assert cluster.broker(2) is cluster.brokers[1]


def test_a_killed_leader_is_replaced_and_restarted(cluster: LocalCluster[LocalBroker]) -> None:
    make_topic(cluster, "led")
    killed = cluster.leader_of("led", 0)
    cluster.kill(killed)
    with pytest.raises(NoView, match="is not running"):
        cluster.look(killed)
    assert cluster.leader_of("led", 0) != killed
    with pytest.raises(BrokerFailed, match=f"not healthy within 0.1 s: broker {killed} does not answer|reports: only"):
        cluster.wait_until_healthy(0.1)
    cluster.restart(killed)
    cluster.wait_until_healthy(DEADLINE_S)


def test_unknown_brokers_and_topics_are_refused(cluster: LocalCluster[LocalBroker]) -> None:
    with pytest.raises(ValueError, match="no broker 4; there are 1, 2, 3"):
        cluster.kill(4)
    with pytest.raises(BrokerFailed, match="partition 0 of no-such-topic had no leader"):
        cluster.leader_of("no-such-topic", 0, timeout_s=0.1)


def test_a_kept_cluster_is_started_again_and_grows(tmp_path: Path) -> None:
    with local_cluster(1, data_dir=tmp_path, base_port=0, fsync="never") as cluster:
        address, cluster_id = cluster.bootstrap, cluster.look(1).cluster_id
    with local_cluster(2, data_dir=tmp_path, base_port=0, fsync="never") as cluster:
        assert cluster.bootstrap.startswith(f"{address},")
        assert cluster.look(2).cluster_id == cluster_id


def test_temporary_data_is_removed() -> None:
    cluster = local_cluster(1, base_port=0)
    assert (cluster.data_dir / "cluster.json").is_file()
    cluster.close()
    assert not cluster.data_dir.exists()


def test_each_line_of_each_log_comes_with_the_broker_that_wrote_it() -> None:
    lines: list[tuple[int, str]] = []
    with local_cluster(2, base_port=0, fsync="never", on_log=lambda id, line: lines.append((id, line))):
        pass
    assert {id for id, line in lines if "is up at" in line} == {1, 2}


def test_an_exception_gets_the_ends_of_the_logs() -> None:
    with pytest.raises(AssertionError, match="the caller's") as caught, local_cluster(1, base_port=0, fsync="never"):
        raise AssertionError("the caller's")
    (note,) = caught.value.__notes__
    assert note.startswith("broker 1:\nIts log ends:\n")
    assert "is up at" in note


def test_a_broker_that_died_by_itself_did_not_stop_cleanly() -> None:
    cluster = local_cluster(1, base_port=0)
    with pytest.raises(BrokerFailed, match="broker 1: the broker ended with exit code -9"), cluster:
        os.kill(cluster.broker(1).pid, signal.SIGKILL)


def test_wrong_settings_are_refused_before_anything_starts() -> None:
    with pytest.raises(SettingError, match="did you mean 'num_partitions'"):
        local_cluster(3, base_port=0, num_partition=3)
