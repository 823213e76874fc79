"""Brokers that do not belong: the cluster tells them so, they tell whoever started them, and nobody else notices."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tailrace.testing import Broker, BrokerFailed, Cluster

pytestmark = pytest.mark.chaos


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """One for all tests of this module; each leaves it as it was."""
    with Cluster(3, proxied=False) as cluster:
        yield cluster


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address where nobody listens, and nobody will."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


def why_not(broker: Broker, *, within_s: float = 20.0) -> str:
    """What a broker says that does not start."""
    began = time.monotonic()
    with pytest.raises(BrokerFailed, match=r"did not start: exit code 1") as refused:
        broker.start(timeout_s=within_s)
    assert time.monotonic() - began < within_s
    assert "Traceback" not in str(refused.value)
    return str(refused.value)


def members(cluster: Cluster) -> list[list[int]]:
    return [[one.id for one in cluster.look(broker).brokers] for broker in cluster.ids]


def test_a_member_that_is_alone_stops_when_it_is_asked() -> None:
    """It waits for its cluster, maybe for ever, and is asked once: who asks does not know what it waits for."""
    with Cluster(3, proxied=False) as cluster:
        folder = cluster.broker(1).data_dir
        for broker in cluster.ids:
            cluster.kill(broker)
        alone = subprocess.Popen(
            [sys.executable, "-m", "tailrace", "serve", "--data-dir", str(folder), "--kafka-port", "0"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert alone.stderr is not None
        said = ""
        while "lane to broker" not in said and alone.poll() is None:
            said += alone.stderr.readline()
        alone.terminate()
        printed, more = alone.communicate(timeout=30)
        assert (alone.returncode, printed, "stopped" in more) == (0, "", True), said + more


def test_a_second_broker_with_a_number_that_is_taken_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    why = why_not(Broker(data_dir=tmp_path, broker_id=2, join=cluster.bootstrap))
    assert "refuses this broker" in why
    assert "broker 2 is alive at " + cluster.broker(2).bootstrap in why
    assert "the one that asks from 127.0.0.1 cannot be broker 2 too" in why
    assert "leave out --broker-id, or stop the other one first" in why
    assert members(cluster) == [[1, 2, 3]] * 3
    cluster.wait_until_healthy()
    assert not (tmp_path / "meta.properties").exists()  # it may be told another number, and try again


def test_a_member_of_another_cluster_is_refused_by_its_cluster_id(cluster: Cluster, tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path, broker_id=2) as other:
        assert other.is_running
    meta = tmp_path / "meta.properties"
    mine = dict(line.split("=", 1) for line in meta.read_text().splitlines() if "=" in line)
    assert mine["cluster.id"] != cluster.look(1).cluster_id
    why = why_not(Broker(data_dir=tmp_path, join=cluster.bootstrap))
    assert mine["cluster.id"] in why
    assert cluster.look(1).cluster_id in why
    assert members(cluster) == [[1, 2, 3]] * 3


def test_nobody_at_the_address_to_join_is_an_error_after_a_while(tmp_path: Path, nobody: str) -> None:
    why = why_not(Broker(data_dir=tmp_path, join=nobody, join_timeout_ms=1000))
    assert "the cluster could not be joined within 1 s" in why
    assert nobody in why
    assert "--join takes the Kafka listener addresses of running brokers" in why


def test_somebody_silent_at_the_address_to_join_is_an_error_too(tmp_path: Path) -> None:
    with Broker() as silent:
        silent.pause()
        why = why_not(Broker(data_dir=tmp_path, join=silent.bootstrap, join_timeout_ms=1000))
        assert silent.bootstrap in why
        assert "no answer" in why
        silent.resume()


def test_a_member_that_is_told_again_to_join_comes_back_as_it_was(cluster: Cluster) -> None:
    before = cluster.look(1).brokers
    seat = cluster.seats[2]
    cluster.stop(3)
    with Broker(data_dir=seat.data_dir, kafka_port=seat.kafka_port, join=cluster.bootstrap) as member:
        assert f"broker 3 is up at {seat.address}" in member.log
    cluster.restart(3)  # as the tests' own cluster has it
    cluster.wait_until_healthy()
    assert cluster.look(1).brokers == before
    assert members(cluster) == [[1, 2, 3]] * 3


def test_a_member_that_is_told_to_join_the_dead_starts_all_the_same(tmp_path: Path, nobody: str) -> None:
    with Broker(data_dir=tmp_path):
        pass
    with Broker(data_dir=tmp_path, join=nobody) as member:
        assert member.is_running


def test_a_joiner_without_a_number_gets_the_next_one(tmp_path: Path) -> None:
    with Broker() as first:
        for number in (2, 3):
            with Broker(data_dir=tmp_path / str(number), join=first.bootstrap) as joiner:
                assert f"broker {number} is up" in joiner.log
