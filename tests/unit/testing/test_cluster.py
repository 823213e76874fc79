"""`tailrace.testing.Cluster`: three real brokers that are killed, paused, cut apart, and well again afterwards."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tailrace.model.settings import SettingError
from tailrace.testing import BrokerFailed, Cluster
from tailrace.testing.cluster_view import NoView

DEADLINE_S = 60.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """One for all tests of this module; each leaves it well."""
    with Cluster(3, fsync="never") as cluster:
        yield cluster
        cluster.heal()


@pytest.fixture
def topic(cluster: Cluster, request: pytest.FixtureRequest) -> str:
    """A topic of the test's own, with three replicas, in a cluster that is well."""
    name = str(request.node.name)
    make_topic(cluster, name)
    return name


def make_topic(cluster: Cluster, name: str) -> None:
    cluster.wait_until_healthy(DEADLINE_S)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(name, 1, 3)])[name].result(DEADLINE_S)
    cluster.wait_until_healthy(DEADLINE_S)


def send(cluster: Cluster, topic: str, value: bytes, *, without: int = 0) -> None:
    """Returns when it is confirmed. A broker that is cut off does not know what the others do: begin `without` it."""
    bootstrap = ",".join(cluster.broker(one).bootstrap for one in others(cluster, without))
    settings = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0}
    failed: list[object] = []
    producer = Producer(settings)
    producer.produce(topic, value, on_delivery=lambda error, _: failed.append(error) if error else None)
    assert (producer.flush(DEADLINE_S), failed) == (0, [])


def values(cluster: Cluster, topic: str, count: int) -> list[bytes | None]:
    settings = {"bootstrap.servers": cluster.bootstrap, "group.id": "none", "enable.auto.commit": False, "log_level": 0}
    reader = Consumer(settings)
    reader.assign([TopicPartition(topic, 0, 0)])
    got = [message.value() for message in reader.consume(count, DEADLINE_S)]
    reader.close()
    return got


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not is_so():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def others(cluster: Cluster, broker_id: int) -> list[int]:
    return [one for one in cluster.ids if one != broker_id]


def leader_by(cluster: Cluster, broker_id: int, topic: str) -> int | None:
    """Who leads, by the word of this broker."""
    partition = cluster.look(broker_id).partition(topic, 0)
    return None if partition is None else partition.leader


def test_every_broker_sees_all_of_them(cluster: Cluster, topic: str) -> None:
    views = [cluster.look(one) for one in cluster.ids]
    assert {view.cluster_id for view in views} == {views[0].cluster_id}
    assert all([one.id for one in view.brokers] == [1, 2, 3] for view in views)
    assert cluster.bootstrap == ",".join(one.bootstrap for one in cluster.brokers)
    assert cluster.broker(2) is cluster.brokers[1]
    assert cluster.leader_of(topic, 0) in cluster.ids


def test_a_killed_leader_is_replaced_and_comes_back(cluster: Cluster, topic: str) -> None:
    send(cluster, topic, b"before")
    killed = cluster.leader_of(topic, 0)
    cluster.kill(killed)
    assert not cluster.broker(killed).is_running
    with pytest.raises(NoView, match="does not run"):
        cluster.look(killed)
    send(cluster, topic, b"after")
    assert cluster.leader_of(topic, 0) != killed
    with pytest.raises(BrokerFailed, match=f"not healthy within 0.1 s: broker {killed} does not answer|says: only"):
        cluster.wait_until_healthy(0.1)
    cluster.restart(killed)
    cluster.wait_until_healthy(DEADLINE_S)
    assert values(cluster, topic, 2) == [b"before", b"after"]


def test_a_paused_leader_is_replaced_and_learns_of_it(cluster: Cluster, topic: str) -> None:
    paused = cluster.leader_of(topic, 0)
    cluster.pause(paused)
    with pytest.raises(NoView, match="is paused"):
        cluster.look(paused)
    wait_until(lambda: cluster.leader_of(topic, 0) != paused, "it still leads")
    leader = cluster.leader_of(topic, 0)
    cluster.resume(paused)
    wait_until(lambda: leader_by(cluster, paused, topic) == leader, "it does not learn who leads")
    cluster.wait_until_healthy(DEADLINE_S)


def test_a_leader_that_is_cut_off_is_replaced(cluster: Cluster, topic: str) -> None:
    lonely = cluster.leader_of(topic, 0)
    for one in others(cluster, lonely):
        cluster.partition(lonely, one)
    wait_until(lambda: cluster.leader_of(topic, 0) != lonely, "it still leads")
    send(cluster, topic, b"meanwhile", without=lonely)
    cluster.heal()
    cluster.wait_until_healthy(DEADLINE_S)
    assert values(cluster, topic, 1) == [b"meanwhile"]


def test_a_leader_that_nobody_hears_is_replaced(cluster: Cluster, topic: str) -> None:
    unheard = cluster.leader_of(topic, 0)
    for one in others(cluster, unheard):
        cluster.partition(unheard, one, one_way=True)
    wait_until(lambda: cluster.leader_of(topic, 0) != unheard, "it still leads")
    cluster.heal()
    cluster.wait_until_healthy(DEADLINE_S)


def test_all_can_be_restarted_at_once(cluster: Cluster, topic: str) -> None:
    send(cluster, topic, b"kept")
    cluster.kill(1, 2, 3)
    cluster.restart(1, 2, 3)
    cluster.wait_until_healthy(DEADLINE_S)
    assert values(cluster, topic, 1) == [b"kept"]


def test_numbers_that_nobody_has(cluster: Cluster) -> None:
    with pytest.raises(ValueError, match="no broker 4; there are 1, 2, 3"):
        cluster.kill(4)
    with pytest.raises(ValueError, match="no broker 0"):
        cluster.partition(1, 0)
    with pytest.raises(BrokerFailed, match="nobody led partition 0 of no-such-topic"):
        cluster.leader_of("no-such-topic", 0, timeout_s=0.1)


def test_a_kept_cluster_is_found_again(tmp_path: Path) -> None:
    """Also without the doors between its brokers: these are known by the same ports."""
    with Cluster(2, data_dir=tmp_path, fsync="never") as cluster:
        address = cluster.bootstrap
        send(cluster, "orders", b"kept")
    with Cluster(3, data_dir=tmp_path, fsync="never", proxied=False) as cluster:
        assert cluster.bootstrap.startswith(f"{address},")
        assert values(cluster, "orders", 1) == [b"kept"]
        with pytest.raises(ValueError, match="is proxied"):
            cluster.partition(1, 2)


def test_a_failure_shows_the_logs() -> None:
    with pytest.raises(AssertionError, match="the test's own") as caught, Cluster(1, fsync="never"):
        raise AssertionError("the test's own")
    (note,) = caught.value.__notes__
    assert note.startswith("broker 1:\nIts log ends:\n")
    assert "is up at" in note


def test_a_broker_that_died_by_itself_is_a_failure() -> None:
    with pytest.raises(BrokerFailed, match="broker 1: the broker ended with exit code -9"), Cluster(1) as cluster:
        os.kill(cluster.broker(1).pid, signal.SIGKILL)


def test_wrong_settings_show_before_anything_starts() -> None:
    with pytest.raises(SettingError, match="did you mean 'num_partitions'"):
        Cluster(3, num_partition=3)
