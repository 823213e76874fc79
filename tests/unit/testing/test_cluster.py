"""`tailrace.testing.Cluster`: three real brokers that are killed, paused and cut apart, and healthy again."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tailrace.local.cluster_view import NoView
from tailrace.model.settings import SettingError
from tailrace.testing import Cluster

DEADLINE_S = 60.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """One for all tests of this module; each leaves it healthy."""
    with Cluster(3, fsync="never") as cluster:
        yield cluster
        cluster.heal()


@pytest.fixture
def topic(cluster: Cluster, request: pytest.FixtureRequest) -> str:
    """A topic of the test's own, with three replicas, in a healthy cluster."""
    name = str(request.node.name)
    make_topic(cluster, name)
    return name


def make_topic(cluster: Cluster, name: str) -> None:
    cluster.wait_until_healthy(DEADLINE_S)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(name, 1, 3)])[name].result(DEADLINE_S)
    cluster.wait_until_healthy(DEADLINE_S)


def send(cluster: Cluster, topic: str, value: bytes, *, without: int = 0) -> None:
    """Returns when the message is confirmed. Bootstrap `without` a broker that is cut off: its metadata is old."""
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
    """The leader in this broker's metadata."""
    partition = cluster.look(broker_id).partition(topic, 0)
    return None if partition is None else partition.leader


def test_a_killed_leader_is_replaced_and_comes_back(cluster: Cluster, topic: str) -> None:
    send(cluster, topic, b"before")
    killed = cluster.leader_of(topic, 0)
    cluster.kill(killed)
    assert not cluster.broker(killed).is_running
    send(cluster, topic, b"after")
    assert cluster.leader_of(topic, 0) != killed
    cluster.restart(killed)
    cluster.wait_until_healthy(DEADLINE_S)
    assert values(cluster, topic, 2) == [b"before", b"after"]


def test_a_paused_leader_is_replaced_and_finds_the_new_one(cluster: Cluster, topic: str) -> None:
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
    isolated = cluster.leader_of(topic, 0)
    for one in others(cluster, isolated):
        cluster.partition(isolated, one)
    wait_until(lambda: cluster.leader_of(topic, 0) != isolated, "it still leads")
    send(cluster, topic, b"meanwhile", without=isolated)
    cluster.heal()
    cluster.wait_until_healthy(DEADLINE_S)
    assert values(cluster, topic, 1) == [b"meanwhile"]


def test_a_leader_whose_messages_do_not_arrive_is_replaced(cluster: Cluster, topic: str) -> None:
    muted = cluster.leader_of(topic, 0)
    for one in others(cluster, muted):
        cluster.partition(muted, one, one_way=True)
    wait_until(lambda: cluster.leader_of(topic, 0) != muted, "it still leads")
    cluster.heal()
    cluster.wait_until_healthy(DEADLINE_S)


def test_all_can_be_restarted_at_once(cluster: Cluster, topic: str) -> None:
    send(cluster, topic, b"kept")
    cluster.kill(1, 2, 3)
    cluster.restart(1, 2, 3)
    cluster.wait_until_healthy(DEADLINE_S)
    assert values(cluster, topic, 1) == [b"kept"]


def test_unknown_brokers_cannot_be_cut_off(cluster: Cluster) -> None:
    with pytest.raises(ValueError, match="no broker 0; there are 1, 2, 3"):
        cluster.partition(1, 0)


def test_a_kept_cluster_is_found_again(tmp_path: Path) -> None:
    """Also without the proxy: its brokers keep the peer ports that they advertise."""
    with Cluster(2, data_dir=tmp_path, fsync="never") as cluster:
        address = cluster.bootstrap
        send(cluster, "orders", b"kept")
    with Cluster(3, data_dir=tmp_path, fsync="never", proxied=False) as cluster:
        assert cluster.bootstrap.startswith(f"{address},")
        assert values(cluster, "orders", 1) == [b"kept"]
        with pytest.raises(ValueError, match="is proxied"):
            cluster.partition(1, 2)


def test_wrong_settings_are_refused_before_anything_starts() -> None:
    with pytest.raises(SettingError, match="did you mean 'num_partitions'"):
        Cluster(3, num_partition=3)
