"""The files of compat/http-queue, as users run them: the system test, with exact counts."""

import importlib.util
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import pytest

from tailrace.client.offsets import LATEST, offsets_at
from tailrace.pipeline.kafka.cluster import Cluster as Pipeline
from tailrace.testing import Broker, Cluster

FOLDER = Path(__file__).parents[4] / "compat" / "http-queue"
PRODUCERS, CONSUMERS, LINES = 5, 3, 993
SHARES = {"T-1": 1821, "T-2": 2317, "T-3": 827}
SYSTEM_TEST_S = 3000  # on a machine that has much else to do


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(part: str, addresses: str, where: Path, *more: str) -> str:
    command = [sys.executable, str(FOLDER / "test.py"), part, addresses, *more]
    done = subprocess.run(
        command, cwd=where, capture_output=True, text=True, timeout=SYSTEM_TEST_S, check=False, env={"PATH": ""}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def counted(where: Path) -> list[Counter[str]]:
    files = [where / f"Consumer_{number}.txt" for number in (1, 2, 3)]
    lines = [file.read_text().splitlines() for file in files]
    assert all(len(set(one)) == len(one) for one in lines)
    return [Counter(line.partition(":")[0] for line in one) for one in lines]


def test_the_system_test_in_small(tmp_path: Path) -> None:
    with Broker(http_port=0, fsync="never") as broker:
        address = broker.endpoints["http"]
        run("p", address, tmp_path, "--lines", "8")
        run("c", address, tmp_path, "--lines", "8")
        for counts in counted(tmp_path):
            assert sum(counts.values()) == 40


def test_the_names_and_results_of_the_libraries() -> None:
    producers, consumers = load("producer_client"), load("consumer_client")
    assert producers.myProducerError is producers.MyProducerError
    assert consumers.myConsumerError is consumers.MyConsumerError
    with Broker(http_port=0, fsync="never") as broker:
        address = broker.endpoints["http"]
        producer = producers.MyProducer([], address)
        with pytest.raises(producers.MyProducerError, match="No topics found"):
            producer.ListTopics()
        assert producer.CreateTopic("t") == 0
        with pytest.raises(producers.MyProducerError, match="Topic already exists"):
            producer.CreateTopic("t")
        assert isinstance(producer.RegisterProducer("t"), int)
        assert producer.Enqueue("t", "é") == 0
        consumer = consumers.MyConsumer(["t"], [f"http://{address}"])
        assert isinstance(consumer.RegisterConsumer("t"), int)
        assert consumer.ListTopics() == ["t"]
        assert consumer.Size("t") == 1
        assert consumer.Dequeue("t") == "é"
        with pytest.raises(consumers.MyConsumerError, match="No new message is published to t"):
            consumer.Dequeue("t")
        with pytest.raises(consumers.MyConsumerError, match="Topic doesn't exist"):
            consumer.RegisterConsumer("none")
        producer.close()
        consumer.close()


def test_a_broker_that_dies_is_left_for_another() -> None:
    producers, consumers = load("producer_client"), load("consumer_client")
    with Cluster(3, http_port=0, fsync="never", proxied=False) as cluster:
        addresses = cluster.endpoints("http").split(",")
        producer = producers.MyProducer(["t"], addresses)
        consumer = consumers.MyConsumer(["t"], addresses[::-1])
        for number in range(10):
            producer.Enqueue("t", f"m{number}")
        assert [consumer.Dequeue("t") for _ in range(5)] == [f"m{number}" for number in range(5)]
        cluster.kill(1)
        for number in range(10, 20):
            producer.Enqueue("t", f"m{number}")
        assert [consumer.Dequeue("t") for _ in range(15)] == [f"m{number}" for number in range(5, 20)]
        assert consumer.Size("t") == 0


@pytest.mark.long
@pytest.mark.timeout(SYSTEM_TEST_S)
@pytest.mark.parametrize("victim", [None, 1, 2])
def test_the_system_test(tmp_path: Path, victim: int | None) -> None:
    with Cluster(3, http_port=0, fsync="never", proxied=False) as cluster:
        addresses = cluster.endpoints("http")
        for part in ("p", "c"):
            with ThreadPoolExecutor() as pool:
                work = pool.submit(run, part, addresses, tmp_path)
                if victim is not None:
                    wait_until_half_way(part, cluster.bootstrap, tmp_path, work, LINES)
                    cluster.kill(victim)
                work.result()
            if victim is not None and part == "p":
                cluster.restart(victim)
        for counts in counted(tmp_path):
            assert counts == SHARES


@pytest.mark.long
@pytest.mark.timeout(SYSTEM_TEST_S)
def test_the_system_test_with_producers_and_consumers_on_different_brokers(tmp_path: Path) -> None:
    with Cluster(3, http_port=0, fsync="never", proxied=False) as cluster:
        first, second, third = cluster.endpoints("http").split(",")
        run("p", f"{first},{second}", tmp_path)
        run("c", third, tmp_path)
        assert counted(tmp_path) == [SHARES] * 3


def wait_until_half_way(part: str, bootstrap: str, where: Path, work: "Future[str]", lines: int) -> None:
    """Return when half of the messages are written, or read by all consumers together."""
    half = PRODUCERS * lines // 2
    until(lambda: work.done() or (written(bootstrap) > half if part == "p" else read(where) > CONSUMERS * half))
    assert not work.done(), "this was to be half way"


def written(bootstrap: str) -> int:
    with Pipeline(bootstrap) as cluster:
        there = cluster.partitions([name for name in cluster.names() if name in SHARES])
        return sum(cluster.run(offsets_at(cluster.core, dict.fromkeys(there, LATEST))).values())


def read(where: Path) -> int:
    return sum(file.read_text().count("\n") for file in where.glob("Consumer_*.txt"))


def until(condition: Callable[[], bool], within_s: float = SYSTEM_TEST_S) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "not within the time"
        time.sleep(0.05)


def test_the_scripts_say_what_is_missing() -> None:
    for script in ("start_servers.sh", "server.sh"):
        assert os.access(FOLDER / script, os.X_OK)
        command = ["/bin/bash", str(FOLDER / script), "1"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env={"PATH": ""})
        assert done.returncode == 1
        assert "tailrace is not on the path" in done.stderr
